"""Peers on a testbed: the ten best of each, as full schemas, for a fixed sample of tasks that all of them see."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any

from pegboard.evaluation.datasets import Query, ToolSet
from pegboard.model import ToolId
from pegboard_bench.peers.rows import peer_rows
from pegboard_bench.peers.table import BASELINES, PEERS
from pegboard_bench.tax.boards import Place, tools_of
from pegboard_bench.tax.job_run import TALLIES
from pegboard_bench.tax.request import Sent
from pegboard_bench.tax.rows import row
from pegboard_bench.tax.tasks import Task
from pegboard_bench.tax.testbeds import Testbed, testbed

K = 10
MOST = 200
"""Messages that each peer is asked about."""


class ByRankings:
    """A ranker of which it is known already what it makes of each message."""

    def __init__(self, rankings: Mapping[str, Sequence[ToolId]]) -> None:
        self._rankings = rankings

    async def begin(self, testbed: Testbed) -> None:
        self._catalog = testbed.catalog

    async def play(self, task: Task) -> Sequence[Sent]:
        found, said = [], ""
        for step in task.steps:
            said = said if step.said is None else step.said
            best = frozenset(self._rankings[said][:K])
            found.append(Sent(tools=tools_of(self._catalog, best), reached=best))
        return found


def sample(tasks: Sequence[Task]) -> list[Task]:
    """Evenly over the tasks that are no sessions, up to `MOST` different messages."""
    short = [task for task in tasks if task.kind != "long"]
    for step in range(1, len(short) + 1):
        kept = short[::step]
        if len(_messages(kept)) <= MOST:
            return kept
    return []


def played_by_peers(bed: str, seed: int, count: int, place: Place) -> Mapping[str, Any]:
    """``rows`` by peer, ``missing`` with the reasons, and ``versions``."""
    return asyncio.run(_played(testbed(bed, place.data), seed, count, place))


async def _played(bed: Testbed, seed: int, count: int, place: Place) -> Mapping[str, Any]:
    assert place.peers is not None  # noqa: S101
    tasks = sample(bed.tasks(seed, count))
    messages = _messages(tasks)
    queries = tuple(Query(id=str(number), text=text) for number, text in enumerate(messages))
    dataset = ToolSet(name=bed.name, catalog=bed.catalog, queries=queries)
    found = await peer_rows(
        dataset, place.peers, lambda _done, _total: None, seed=seed, peers=(*BASELINES, *PEERS), sample=MOST
    )
    rows = {}
    for name, run in found.runs.items():
        method = ByRankings({text: run.rankings[number] for number, text in enumerate(messages)})
        await method.begin(bed)
        rows[name] = [row(task, await method.play(task), *TALLIES) for task in tasks]
    versions = {name: run.version for name, run in found.runs.items()}
    return {"rows": rows, "missing": dict(found.missing), "versions": versions, "tasks": len(tasks)}


def _messages(tasks: Sequence[Task]) -> list[str]:
    return list(dict.fromkeys(step.said for task in tasks for step in task.steps if step.said is not None))
