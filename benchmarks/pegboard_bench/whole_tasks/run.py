"""All plays of a plan, each kept as soon as it is done, so that a run that was broken off goes on."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import aiohttp

from pegboard.evaluation.progress_bar import bar
from pegboard_bench.whole_tasks.distractors import COUNT, definition, distractors
from pegboard_bench.whole_tasks.methods import Begin, stage
from pegboard_bench.whole_tasks.model import NAME, PATIENCE, Respond, endpoint, oracle
from pegboard_bench.whole_tasks.oracle import NoisyOracle
from pegboard_bench.whole_tasks.play import Played
from pegboard_bench.whole_tasks.rates import MEAN, Rates, rates
from pegboard_bench.whole_tasks.task_set import TaskSet
from pegboard_bench.whole_tasks.workspace import Workspace

BOARDS = ("servers", f"plus{COUNT}")
"""The servers' own tools, and so many distractors beside them."""

Plays = Mapping[str, Mapping[str, Mapping[int, Sequence[Played]]]]
"""By board, method and seed, in the order of the tasks."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """``url`` is a model to play instead of the noisy oracle of the model ``like``; ``most`` is how many tasks."""

    methods: Sequence[str]
    played: TaskSet
    kept: Path
    boards: Sequence[str] = BOARDS
    seeds: Sequence[int] = (0,)
    most: int | None = None
    like: str = MEAN
    url: str | None = None
    name: str = NAME
    fastmcp: Path | None = None

    @property
    def rates(self) -> Rates:
        return rates()[self.like]


async def run(plan: Plan) -> tuple[Plays, dict[str, int]]:
    """Every play of the plan, and how many tools each board has.

    Raises ConfigError where a server or an endpoint does not answer.
    """
    plan.kept.mkdir(parents=True, exist_ok=True)
    found = {board: await _board(plan, board) for board in plan.boards}
    return {board: plays for board, (plays, _) in found.items()}, {board: tools for board, (_, tools) in found.items()}


async def _board(plan: Plan, board: str) -> tuple[dict[str, dict[int, list[Played]]], int]:
    with tempfile.TemporaryDirectory(prefix="pegboard-tasks-") as folder:
        spare = Workspace(root=Path(folder), model=Path(folder))
        servers = set(plan.played.servers(spare))
        more = {
            name: [definition(tool) for tool in tools]
            for name, tools in (distractors(COUNT, servers, ()) if board != BOARDS[0] else {}).items()
        }
        options: dict[str, Any] = {"rates": plan.rates, "name": plan.name, "fastmcp": plan.fastmcp}
        async with (
            stage(plan.methods, plan.played, more, Path(folder) / "stage", **options) as ready,
            aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(PATIENCE)) as session,
        ):
            begin, tasks = _begin(plan, session), ready.tasks[: plan.most]
            found: dict[str, dict[int, list[Played]]] = {}
            total = len(ready.ways) * len(plan.seeds) * len(tasks)
            with bar(f"plays, {board}") as progress:
                for method in ready.ways:
                    for seed in plan.seeds:
                        keep = _Kept(plan.kept / f"{board}-{method}-{seed}.jsonl")
                        for task in tasks:
                            if task.name not in keep.plays:
                                keep.add(await ready.play(method, task, seed, begin))
                            found.setdefault(method, {}).setdefault(seed, []).append(keep.plays[task.name])
                            progress(sum(len(each) for seeds in found.values() for each in seeds.values()), total)
            return found, len(ready.box.ids)


def _begin(plan: Plan, session: aiohttp.ClientSession) -> Begin:
    def begin(task: Any, seed: int, ids: Sequence[Any]) -> tuple[Respond, Sequence[str]]:
        if plan.url is not None:
            return endpoint(plan.url, plan.name, session), []
        noisy = NoisyOracle(task, plan.rates, seed, ids)
        return oracle(noisy), noisy.missed

    return begin


class _Kept:
    """The plays of one method and seed, one a line."""

    def __init__(self, path: Path) -> None:
        self._path = path
        text = path.read_text("utf-8") if path.exists() else ""
        whole = text[: text.rfind("\n") + 1]  # the last line may have been broken off
        self.plays: dict[str, Played] = {play["task"]: play for play in map(json.loads, whole.splitlines())}
        if whole != text:
            path.write_text(whole, "utf-8")

    def add(self, play: Played) -> None:
        self.plays[play["task"]] = play
        with self._path.open("a", encoding="utf-8") as lines:
            lines.write(json.dumps(play, separators=(",", ":")) + "\n")
