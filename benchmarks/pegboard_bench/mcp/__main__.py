"""`python -m pegboard_bench.mcp` writes `bench/results/mcp.json`: what a hop costs, by transport and era."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.table import Table

from pegboard.evaluation.progress_bar import bar
from pegboard_bench import results
from pegboard_bench.mcp import measure
from pegboard_bench.mcp.contenders import ERAS, HERE, TRANSPORTS, Contender, Era, Transport, connected, contenders
from pegboard_bench.page import write_page

SEED = 0
"""Nothing here is drawn by chance."""
SETTLE_SECONDS = 10.0
"""Between the start and the first round: Pegboard indexes the tools meanwhile."""
PAIRS = {
    "over_direct": ("pegboard", "direct"),
    "over_bare_sdk": ("pegboard", "bare_sdk"),
    "bare_sdk_over_direct": ("bare_sdk", "direct"),
    "fastmcp_over_direct": ("fastmcp", "direct"),
    "over_fastmcp": ("pegboard", "fastmcp"),
}

Times = Mapping[str, Sequence[float]]
STDERR = Console(stderr=True)


def main(
    fastmcp: Annotated[
        Path, typer.Option(help="A Python that has FastMCP; installed by scripts/install_clients.py.")
    ] = Path(".demo/clients/fastmcp/bin/python"),
    out: Annotated[Path, typer.Option(help="Folder for mcp.json.")] = Path("bench/results"),
    page: Annotated[Path | None, typer.Option(help="Write the results as a section of this page too.")] = None,
    number: Annotated[int, typer.Option("--rounds", help="Rounds of each kind of work.")] = 60,
    transports: Annotated[str, typer.Option(help="Transports to measure, separated by commas.")] = ",".join(TRANSPORTS),
    eras: Annotated[str, typer.Option(help="Eras to measure, separated by commas.")] = ",".join(ERAS),
) -> None:
    """Measure calls and lists: directly, through the barest proxy on the SDK, Pegboard, and FastMCP's proxy."""
    peer = fastmcp.absolute() if fastmcp.exists() else None
    if peer is None:
        STDERR.print(f"Not measured: FastMCP. There is no {fastmcp}; scripts/install_clients.py installs it.")
    figures: dict[str, float] = {}
    tables: dict[str, Any] = {"ms": {}, "ratios": {}, "protocols": {}, "rounds": number}
    if peer is not None:
        tables["fastmcp"] = _fastmcp_version(peer)
    cells: list[tuple[Transport, Era]] = [
        (transport, era)
        for transport in TRANSPORTS
        for era in ERAS
        if transport in transports.split(",") and era in eras.split(",")
    ]
    with tempfile.TemporaryDirectory(prefix="pegboard-bench-") as folder:
        for transport, era in cells:
            found = asyncio.run(_cell(contenders(peer, Path(folder)), transport, era, number))
            tables["protocols"][f"{transport}/{era}"] = found.pop("protocols")
            for work, times in found.items():
                _enter(figures, tables, f"{transport}/{era}", work, times)
    path = results.write("mcp", command="make bench-mcp", seed=SEED, figures=figures, tables=tables, folder=out)
    Console(width=None if sys.stdout.isatty() else 120).print(_shown(figures))
    STDERR.print(f"Written to {path}")
    if page is not None:
        write_page(page, out)
        STDERR.print(f"Written to {page}")


async def _cell(given: Sequence[Contender], transport: Transport, era: Era, number: int) -> dict[str, Any]:
    """Times by kind of work and contender, all connected at once."""
    async with AsyncExitStack() as stack:
        clients = {each.name: await stack.enter_async_context(connected(each, transport, era)) for each in given}
        await asyncio.sleep(SETTLE_SECONDS)
        found: dict[str, Any] = {"protocols": {name: str(client.protocol_version) for name, client in clients.items()}}
        for work in measure.WORKS:
            with bar(f"{transport}, {era}: {work.name}") as progress:
                done = 0

                def tick(progress: Any = progress) -> None:
                    nonlocal done
                    done += 1
                    progress(done, number + 1)

                found[work.name] = await measure.rounds(clients, work, number, tick)
        return found


def _enter(figures: dict[str, float], tables: dict[str, Any], cell: str, work: str, times: Times) -> None:
    tables["ms"][f"{work}/{cell}"] = {name: measure.spread(values).row() for name, values in times.items()}
    for pair, (over, under) in PAIRS.items():
        if over in times and under in times:
            name = f"fastmcp_{work}_over_direct" if pair == "fastmcp_over_direct" else f"{work}_{pair}"
            found = measure.ratio(times, over, under)
            figures[f"{name}/{cell}"] = found.median
            tables["ratios"][f"{name}/{cell}"] = found.row()


def _fastmcp_version(python: Path) -> str:
    command = [str(python), str(HERE / "fastmcp_proxy.py"), "version"]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()


def _shown(figures: Mapping[str, float]) -> Table:
    table = Table(title="one hop, ratios of medians", title_justify="left")
    table.add_column("figure")
    table.add_column("value", justify="right")
    for name, value in figures.items():
        table.add_row(name, f"{value:.3f}")
    return table


if __name__ == "__main__":
    typer.run(main)
