"""`python -m pegboard_bench.fleet` writes `bench/results/fleet.json`: many real servers behind one gateway."""

from __future__ import annotations

import asyncio
import logging
import sys
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import asdict
from pathlib import Path
from statistics import median
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.table import Table

from pegboard.evaluation.progress_bar import bar
from pegboard.settings import load_settings
from pegboard.settings.server_spec import ServerSpec
from pegboard_bench import results
from pegboard_bench.fleet import startup, tokens
from pegboard_bench.fleet.startup import Startup
from pegboard_bench.fleet.tokens import EXPOSURES, Spent
from pegboard_bench.page import write_page

FEWEST = 12
SEED = 0
"""Nothing here is drawn by chance."""
STDERR = Console(stderr=True)


def main(
    config: Annotated[Path, typer.Option(help="The fleet; written by scripts/install_fleet.py.")] = Path(
        ".demo/fleet.json"
    ),
    out: Annotated[Path, typer.Option(help="Folder for fleet.json.")] = Path("bench/results"),
    page: Annotated[Path | None, typer.Option(help="Write the results as a section of this page too.")] = None,
    number: Annotated[int, typer.Option("--rounds", help="Starts of each kind.")] = 5,
    fewest: Annotated[int, typer.Option(help="Fail with fewer servers than these.")] = FEWEST,
) -> None:
    """Measure tokens before and after, and starting, with a fleet of real servers behind one gateway."""
    specs = load_settings([config]).enabled_servers
    if len(specs) < fewest:
        STDERR.print(f"{config} has {len(specs)} servers; at least {fewest} are needed. See scripts/install_fleet.py.")
        raise typer.Exit(1)
    logging.getLogger("mcp").setLevel(logging.CRITICAL)  # some servers print to stdout what is no message
    with tempfile.TemporaryDirectory(prefix="pegboard-bench-") as folder, bar("fleet") as progress:
        done = 0
        steps = 2 * len(specs) + len(EXPOSURES) + number * startup.KINDS

        def tick() -> None:
            nonlocal done
            done += 1
            progress(done, steps)

        servers, spent, starts = asyncio.run(_measured(specs, config, Path(folder), number, tick))
    board = sum(each["tokens"] for each in servers)
    path = results.write(
        "fleet",
        command="make bench-fleet",
        seed=SEED,
        figures={"servers": len(specs), "tools": sum(each["tools"] for each in servers), "tokens/board": board}
        | _token_figures(spent, board)
        | _start_figures(starts),
        tables={
            "servers": [each | {"start_s": round(starts.each[each["name"]], 3)} for each in servers],
            "exposures": {name: asdict(each) for name, each in spent.items()},
            "startup": starts.table(),
            "queries": tokens.QUERIES,
            "rounds": number,
        },
        folder=out,
    )
    console = Console(width=None if sys.stdout.isatty() else 120)
    table = Table(title="a fleet behind one gateway", title_justify="left")
    table.add_column("figure")
    table.add_column("value", justify="right")
    for name, value in results.read(path)["figures"].items():
        table.add_row(name, f"{value:,.3f}".removesuffix(".000"))
    console.print(table)
    STDERR.print(f"Written to {path}")
    if page is not None:
        write_page(page, out)
        STDERR.print(f"Written to {page}")


Measured = tuple[list[dict[str, Any]], dict[str, Spent], Startup]


async def _measured(
    specs: Mapping[str, ServerSpec], config: Path, folder: Path, number: int, tick: Callable[[], None]
) -> Measured:
    servers = []
    for name, spec in specs.items():
        servers.append(await tokens.described(name, spec))
        tick()
    spent: dict[str, Spent] = {}
    for exposure in EXPOSURES:
        spent[exposure] = await tokens.spent(config, folder, exposure)
        tick()
    return servers, spent, await startup.measure(specs, config, folder, number, tick)


def _token_figures(spent: Mapping[str, Spent], board: int) -> dict[str, float]:
    """Tokens by exposure: at the start and their share of the board, of a search, and of the two calls after it."""
    figures: dict[str, float] = {}
    for name, each in spent.items():
        figures[f"tokens/{name}/start"] = each.start
        figures[f"tokens/{name}/start_over_board"] = each.start / board
        figures[f"tokens/{name}/search"] = each.search
        figures[f"tokens/{name}/search_adds_to_list"] = each.added
        figures[f"tokens/{name}/describe_invoke"] = each.describe_invoke
        figures[f"tokens_sent/{name}/start"] = each.sent
    return figures


def _start_figures(starts: Startup) -> dict[str, float]:
    """Seconds, medians over the rounds; `minus` are differences within a round."""
    figures = {f"startup_s/{kind}": median(values) for kind, values in starts.seconds.items()}
    ready = starts.seconds["all_ready"]
    for kind in ("slowest_alone", "all_without_gateway"):
        pairs = zip(ready, starts.seconds[kind], strict=True)
        figures[f"startup_s/all_ready_minus_{kind}"] = median(a - b for a, b in pairs)
    return figures | {
        "not_ready_at_first_search": median(starts.not_ready),
        "rss_mb/gateway": median(starts.memory),
    }


if __name__ == "__main__":
    typer.run(main)
