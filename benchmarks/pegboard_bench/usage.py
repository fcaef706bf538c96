"""What selection learns from use, on streams of recorded turns: `make bench-usage` writes `bench/results/usage.json`.

Every turn is predicted with what the earlier turns taught, then learnt from: there is no look-ahead.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer
from rich.console import Console

from pegboard.compose import build_routing, default_parts
from pegboard.evaluation.datasets import QUERIES, ToolSet, read_set
from pegboard.evaluation.progress_bar import bar
from pegboard.habits import HALF_LIFE, habits_of
from pegboard.model import Floats, Scores, Turn
from pegboard.retrieval import OnnxEncoder
from pegboard.routing.habit_book import HabitBook
from pegboard.routing.habit_learner import OFFERED, HabitLearner
from pegboard.settings import load_settings
from pegboard.stores import MemoryEmbeddings
from pegboard_bench import results
from pegboard_bench.page import write_page
from pegboard_bench.usage_streams import Stream, called, changing, reversing, steady

SEED = 42
SETS = ("metatool", "mcpverse", "graphtoolcall", "livemcp_tasks")
"""Sets on which nothing of the learning was chosen (that was done on toolalpaca and nestful)."""
STREAMS = (steady, changing, reversing)
K = 5
WINDOW = 200
"""Turns of the windows in which the taught order is compared with the other."""
RESAMPLES = 2_000
STDERR = Console(stderr=True)


@dataclass(frozen=True, slots=True, kw_only=True)
class Served:
    """Recall@5 of each turn, shape (turns,): without learning, and as served, in the state that the trial was in."""

    untaught: Floats
    served: Floats
    used: Floats

    def figures(self, stream: Stream) -> dict[str, float]:
        """Means over the later half of the turns, or those after the change; the least difference in any window."""
        since = len(stream.turns) // 2 if stream.changes is None else stream.changes
        gain = self.served - self.untaught
        low, high = interval(gain[since:])
        window = min(WINDOW, len(gain))
        moving = np.convolve(gain, np.ones(window) / window, "valid")
        return {
            "turns": len(gain),
            "untaught": float(self.untaught[since:].mean()),
            "taught": float(self.served[since:].mean()),
            "gain": float(gain[since:].mean()),
            "gain_low": low,
            "gain_high": high,
            "gain_whole": float(gain.mean()),
            "least_window": float(moving.min()),
            "used": float(self.used.mean()),
        }


def main(
    data: Annotated[
        Path | None, typer.Option(envvar="PEGBOARD_DATA", help="Folder of the tool-retrieval sets.")
    ] = None,
    out: Annotated[Path, typer.Option(help="Folder for usage.json.")] = Path("bench/results"),
    page: Annotated[Path | None, typer.Option(help="Write the results as a page to this file too.")] = None,
    sets: Annotated[str, typer.Option(help="Sets to measure, separated by commas.")] = ",".join(SETS),
    most: Annotated[int, typer.Option(help="Most turns of a set.")] = 2_000,
) -> None:
    """Measure recall@5 on streams of recorded turns, with and without learning from the earlier ones."""
    wanted = sets.split(",")
    folders = [data / name for name in wanted if (data / name / QUERIES).is_file()] if data else []
    if missing := set(wanted) - {folder.name for folder in folders}:
        STDERR.print(f"Not measured, for want of data: {', '.join(sorted(missing))}. Set PEGBOARD_DATA to the folder.")
    if not folders:
        return
    figures: dict[str, float] = {}
    for folder in folders:
        figures |= asyncio.run(_measured(read_set(folder), most))
    path = results.write(
        "usage", command="make bench-usage", seed=SEED, figures=figures, tables=_about(folders), folder=out
    )
    Console().print(f"Written to {path}")
    if page is not None:
        write_page(page, out)


async def _measured(dataset: ToolSet, most: int) -> dict[str, float]:
    dataset = replace(dataset, queries=tuple(query for query in dataset.queries if called(query))[:most])
    scores = await _scores(dataset)
    found: dict[str, float] = {}
    for make in STREAMS:
        stream = make(dataset, SEED)
        for seen, censored in (("all", False), ("offered", True)):
            served = serve(stream, dataset, scores, censored=censored)
            values = served.figures(stream)
            found |= {f"{name}/{dataset.name}/{stream.name}/{seen}": value for name, value in values.items()}
            STDERR.print(
                f"{dataset.name}, {stream.name}, {seen}: {values['untaught']:.3f} -> {values['taught']:.3f} "
                f"({values['gain']:+.3f}), least window {values['least_window']:+.3f}, used {values['used']:.2f}"
            )
    return found


def serve(stream: Stream, dataset: ToolSet, scores: Mapping[str, Scores], *, censored: bool) -> Served:
    """Serve a stream in order. If it is ``censored``, only those calls are seen whose tool was among the first 10 of
    the served order; otherwise the model finds the others by searching, and they are seen too."""
    learner, habits = HabitLearner(HabitBook(_Still())), habits_of("bench", stream.name)
    tools, position = dataset.catalog.tools, dataset.catalog.position
    among = np.ones(len(tools), np.bool_)
    rows: list[tuple[float, float, float]] = []
    for turn in stream.turns:
        base, wanted = scores[turn.text], called(turn)
        served = learner.adjusted(habits, turn.text, base, tools, among, encoder="bench")
        places = [position[tool] for tool in wanted]
        rows.append((_recall(base.values, places), _recall(served.values, places), float(served is not base)))
        first = set(_first(served.values, OFFERED))
        seen = [tool for tool in wanted if not censored or position[tool] in first]
        learner.called(habits, turn.text, seen, ended=True)
    untaught, taught, used = np.array(rows, np.float32).T
    return Served(untaught=untaught, served=taught, used=used)


def interval(gain: Floats) -> tuple[float, float]:
    """The 95% interval of a mean, by bootstrap over turns."""
    random = np.random.default_rng(SEED)
    means = [float(gain[random.integers(len(gain), size=len(gain))].mean()) for _ in range(RESAMPLES)]
    low, high = np.percentile(means, [2.5, 97.5])
    return float(low), float(high)


async def _scores(dataset: ToolSet) -> dict[str, Scores]:
    """The scores of the profile `hybrid` as shipped, by text."""
    settings = load_settings()
    parts = default_parts(settings, encoder=OnnxEncoder(), embeddings=MemoryEmbeddings(1_000_000))
    board = build_routing(settings, dataset.catalog, parts=parts)
    await board.warm()
    found: dict[str, Scores] = {}
    with bar(dataset.name) as progress:
        for number, query in enumerate(dataset.queries, 1):
            scored = await board.scores(Turn.ask(query.text))
            if scored is not None:
                found[query.text] = replace(scored, parts={})
            progress(number, len(dataset.queries))
    await parts.close()
    return found


def _first(values: Floats, k: int) -> list[int]:
    return [int(place) for place in np.argsort(-values, kind="stable")[:k]]


def _recall(values: Floats, wanted: Sequence[int]) -> float:
    return len(set(_first(values, K)).intersection(wanted)) / len(wanted)


class _Still:
    """A clock that stands still: nothing fades, the harder case for habits that change."""

    def time(self) -> float:
        return 0.0

    def monotonic(self) -> float:
        return 0.0


def _about(folders: Sequence[Path]) -> dict[str, Any]:
    return {
        "sets": [folder.name for folder in folders],
        "streams": [make.__name__ for make in STREAMS],
        "window": WINDOW,
        "half_life_days": HALF_LIFE / 86_400,
        "k": K,
    }


if __name__ == "__main__":
    typer.run(main)
