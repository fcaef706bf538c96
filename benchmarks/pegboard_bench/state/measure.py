"""The time that each kind of work takes, store after store in turns."""

from __future__ import annotations

import asyncio
import time
from collections import defaultdict
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import replace

from pegboard.model import Outcome, Session, ToolId
from pegboard.retrieval import Progress
from pegboard.spend_limits import Account, Limits, nano_usd
from pegboard_bench.state.sessions import session
from pegboard_bench.state.stores import Stores

TOGETHER = 16
EACH = 16
"""Pieces of work of a kind in a round: one after the other, and then all at once."""
TOOLS = 30

Work = Callable[[int], Awaitable[object]]
Times = Mapping[str, Mapping[str, list[float]]]
"""Milliseconds by kind of work, then by store; `/16` where so many are done at once."""


def works(stores: Stores) -> dict[str, Work]:
    """Each takes the number of the task that does it."""
    saved: dict[int, Session] = {}

    async def observe(task: int) -> None:
        await stores.statistics.observe(
            [Outcome(tool=ToolId("bench", f"tool{task % TOOLS}"), success=True, latency_ms=40)]
        )

    async def save(task: int) -> None:
        before = saved.get(task) or session(task)
        saved[task] = await stores.sessions.save(replace(before, notices=before.version % 2))

    async def load(task: int) -> None:
        await stores.sessions.load(session(task).id)

    async def spend(task: int) -> None:
        limits = Limits(session=nano_usd(1e6), key=nano_usd(1e6), day=nano_usd(1e6))
        account = Account(session=session(task).id, key=f"key {task % 4}")
        await stores.spend.settle(await stores.spend.reserve(account, nano_usd(0.01), limits), nano_usd(0.01))

    return {"observe": observe, "session_save": save, "session_load": load, "spend": spend}


async def measure(stores: Mapping[str, Stores], rounds: int, progress: Progress) -> Times:
    """The order of the stores goes round; the first round warms up and is not counted."""
    found: dict[str, dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    todo = {name: works(each) for name, each in stores.items()}
    names = list(todo)
    for number in range(rounds + 1):
        first = number % len(names)
        for name in names[first:] + names[:first]:
            for kind, work in todo[name].items():
                alone = [await _timed(work, task) for task in range(EACH)]
                together = await asyncio.gather(*(_timed(work, task) for task in range(TOGETHER)))
                if number:
                    found[kind][name] += alone
                    found[f"{kind}/{TOGETHER}"][name] += together
        progress(number + 1, rounds + 1)
    return found


async def _timed(work: Work, task: int) -> float:
    started = time.perf_counter()
    await work(task)
    return (time.perf_counter() - started) * 1000
