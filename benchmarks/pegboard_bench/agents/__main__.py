"""`python -m pegboard_bench.agents` writes `bench/results/agents.json`: agents of thirty turns, beside other ways."""

from __future__ import annotations

import json
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from statistics import median
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.table import Table

from pegboard.catalog.ingest import read_catalog
from pegboard.evaluation.progress_bar import bar
from pegboard.gateways.langchain.model_request import Rendering
from pegboard.library.portal import Portal
from pegboard.retrieval import OnnxEncoder
from pegboard.settings import load_settings
from pegboard_bench import results
from pegboard_bench.agents.contenders import contenders, local_tools, pegboard
from pegboard_bench.agents.overhead import SIZES, WAYS, memory, overhead
from pegboard_bench.agents.play import Played, play, total
from pegboard_bench.agents.script import Ask, conversation, shuffled, with_arguments
from pegboard_bench.page import write_page

SEEDS = range(5)
REAL = Path("real120") / "catalog_core.jsonl.gz"
RENDERINGS: tuple[Rendering, ...] = ("native", "text")
STDERR = Console(stderr=True)


def main(
    data: Annotated[Path, typer.Option(envvar="PEGBOARD_DATA", help="Folder of the tool-retrieval sets.")],
    out: Annotated[Path, typer.Option(help="Folder for agents.json.")] = Path("bench/results"),
    page: Annotated[Path | None, typer.Option(help="Write the results as a section of this page too.")] = None,
    servers: Annotated[Path, typer.Option(help="Configuration of the live servers.")] = Path(".demo/mcp.json"),
) -> None:
    """Play the conversations with every contender in turns; then the live servers, overhead and memory."""
    with tempfile.TemporaryDirectory(prefix="pegboard-bench-") as folder:
        played = _recorded(data / REAL, Path(folder))
        figures = _figures("real120", played)
        live = _live(servers, Path(folder))
        figures |= _figures("live", live)
        for size in SIZES:
            for rendering in RENDERINGS:
                figures |= overhead(size, rendering, OnnxEncoder(), Path(folder))
        for way in WAYS:
            figures |= memory(way, Path(folder))
    tables = {"turns": _turns({**played, **{f"live/{name}": each for name, each in live.items()}})}
    path = results.write(
        "agents", command="make bench-agents", seed=SEEDS[0], figures=figures, tables=tables, folder=out
    )
    Console(width=None if sys.stdout.isatty() else 120).print(_shown(figures))
    STDERR.print(f"Written to {path}")
    if page is not None:
        write_page(page, out)
        STDERR.print(f"Written to {page}")


def _recorded(source: Path, cache: Path) -> dict[str, list[Played]]:
    """Real schemas, executors in this process: each contender plays each order of the story, in turns."""
    catalog = read_catalog(source)
    tools, encoder, portal = local_tools(catalog), OnnxEncoder(), Portal()
    asks = with_arguments(conversation("real120"), catalog)

    def embed(texts: Sequence[str]) -> list[list[float]]:
        return [[float(value) for value in row] for row in portal.run(encoder.encode(list(texts)))]

    makers = contenders(tools, encoder, embed, cache)
    played: dict[str, list[Played]] = {name: [] for name in makers}
    with bar("conversations") as progress:
        for done, (seed, name) in enumerate(((seed, name) for seed in SEEDS for name in makers), 1):
            contender = makers[name]()
            played[name].append(play(contender, shuffled(asks, seed)))
            contender.close()
            progress(done, len(SEEDS) * len(makers))
    portal.close()
    return played


def _live(servers: Path, cache: Path) -> dict[str, list[Played]]:
    """Real servers as processes of their own, and real calls."""
    if not servers.is_file():
        STDERR.print(f"Not measured: {servers} is not there; scripts/install_servers.py writes it.")
        return {}
    folder = next(iter(load_settings([servers]).servers.values())).cwd or str(servers.absolute().parent)
    asks = [_in(ask, folder) for ask in conversation("live")]
    played = {}
    for rendering in RENDERINGS:
        options: dict[str, Any] = {"config": servers, "start_wait": 60, "cache_dir": cache, "state_dir": cache}
        contender = pegboard((), rendering=rendering, **options)
        played[f"hybrid/{rendering}"] = [play(contender, asks)]
        contender.close()
    return played


def _in(ask: Ask, folder: str) -> Ask:
    said: list[Mapping[str, Any]] = json.loads(json.dumps(list(ask.arguments)).replace("{folder}", folder))
    return replace(ask, arguments=tuple(said))


def _figures(testbed: str, played: Mapping[str, Sequence[Played]]) -> dict[str, float]:
    """Medians over the conversations; counts of the gate over all of their turns."""
    figures: dict[str, float] = {}
    for name, each in played.items():
        where = f"{testbed}/{name}"
        turns = [turn for one in each for turn in one.turns]
        count = len(each[0].turns)
        gated = [turn for turn in turns if turn.refused]
        per_turn = {
            "requests": [total(one.turns, "requests") / count for one in each],
            "selecting_requests": [sum(len(turn.selecting) for turn in one.turns) / count for one in each],
            "input_tokens": [total(one.turns, "sent") / count for one in each],
            "selecting_tokens": [sum(sum(turn.selecting) for turn in one.turns) / count for one in each],
        }
        for what, values in per_turn.items():
            figures[f"{what}_per_turn/{where}"] = median(values)
            figures[f"{what}_per_turn_least/{where}"] = min(values)
            figures[f"{what}_per_turn_most/{where}"] = max(values)
        about = [total(one.turns, "about_tools") / total(one.turns, "requests") for one in each]
        figures[f"tool_tokens_per_request/{where}"] = median(about)
        figures[f"recall_at_first_sight/{where}"] = total(turns, "at_first_sight") / total(turns, "wanted")
        figures[f"recall_called/{where}"] = total(turns, "called") / total(turns, "wanted")
        figures[f"turn_ms/{where}"] = median(turn.seconds * 1000 for turn in turns)
        figures[f"gate_triggered/{where}"] = len(gated) / len(turns)
        if gated:
            recovered = sum(turn.called >= turn.wanted for turn in gated)
            figures[f"gate_recovered/{where}"] = recovered / len(gated)
            figures[f"gate_asked_user/{where}"] = 1 - recovered / len(gated)
        figures[f"prefix_kept/{where}"] = min(float(one.prefix_kept) for one in each)
        for provider in each[0].billed:
            figures[f"cache_read_share/{where}/{provider}"] = median(one.read_share[provider] for one in each)
            figures[f"billed_tokens_per_turn/{where}/{provider}"] = median(one.billed[provider] / count for one in each)
    return figures


def _turns(played: Mapping[str, Sequence[Played]]) -> dict[str, list[dict[str, int]]]:
    """Turn by turn, of the conversation in the order of its story."""
    return {
        name: [
            {"requests": turn.requests, "input": turn.sent, "about_tools": turn.about_tools, "refused": turn.refused}
            for turn in each[0].turns
        ]
        for name, each in played.items()
    }


def _shown(figures: Mapping[str, float]) -> Table:
    table = Table(title="agents of thirty turns", title_justify="left")
    table.add_column("figure")
    table.add_column("value", justify="right")
    for name, value in figures.items():
        table.add_row(name, f"{value:,.3f}")
    return table


if __name__ == "__main__":
    typer.run(main)
