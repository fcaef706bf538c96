from __future__ import annotations

import asyncio
import math
from dataclasses import replace
from itertools import permutations

import pytest

from backends import Backend
from pegboard.averages import PRIOR, SMOOTHING, after_all
from pegboard.model import Outcome, Smoothing, ToolId, ToolStatistics

LOG, NOW = ToolId("git", "log"), ToolId("time", "now")
SLOW = Smoothing(success=1e-5, variance=2e-5, failure=3e-5, latency=4e-5)
"""Averages that forget so slowly that one lost update of thousands shows."""


def outcome(tool: ToolId = LOG, *, failure: str | None = None, success: bool = True, ms: float = 250.0) -> Outcome:
    return Outcome(tool=tool, success=success and failure is None, latency_ms=ms, failure=failure)  # type: ignore[arg-type]


def values(statistics: ToolStatistics) -> list[float]:
    return [
        statistics.calls,
        statistics.successes,
        statistics.success,
        statistics.variance,
        statistics.failure,
        statistics.latency,
    ]


async def test_nothing_is_known_of_what_was_never_called(backend: Backend) -> None:
    assert await backend.statistics().read() == {}


async def test_a_latency_that_is_no_number_leaves_the_average(backend: Backend) -> None:
    store = backend.statistics()
    calls = [outcome(ms=ms) for ms in (250.0, float("inf"), float("nan"), 250.0)]

    await store.observe(calls)

    known = (await store.read())[LOG]
    assert known.calls == 4
    assert known.latency == pytest.approx(after_all(PRIOR, [calls[0], calls[3]], SMOOTHING).latency, rel=1e-12)


@pytest.mark.requirement("001.eq8")
async def test_counts_and_averages_follow_the_calls_in_their_order(backend: Backend) -> None:
    store = backend.statistics()
    of_log = [outcome(), outcome(success=False), outcome(failure="server", ms=3_000), outcome(failure="caller")]

    await store.observe([of_log[0], outcome(NOW), of_log[1]])
    await store.observe(of_log[2:])

    known = await store.read()
    assert known.keys() == {LOG, NOW}
    assert (known[LOG].calls, known[LOG].successes) == (4, 1)
    assert values(known[LOG]) == pytest.approx(values(after_all(PRIOR, of_log, SMOOTHING)), rel=1e-12)
    assert values(known[NOW]) == pytest.approx(values(after_all(PRIOR, [outcome(NOW)], SMOOTHING)), rel=1e-12)


@pytest.mark.requirement("001.verdict")
async def test_a_verdict_revises_the_averages_and_counts_no_call(backend: Backend) -> None:
    store = backend.statistics()
    calls = [outcome(), outcome(failure="server", ms=3_000), outcome(), outcome(failure="verdict", ms=0)]
    many = [outcome(failure="verdict", ms=0)] * 30

    await store.observe([*calls, outcome(NOW)])
    await store.observe([replace(each, tool=NOW) for each in many])

    known = await store.read()
    assert (known[LOG].calls, known[LOG].successes, known[NOW].calls, known[NOW].successes) == (3, 1, 1, 0)
    assert values(known[LOG]) == pytest.approx(values(after_all(PRIOR, calls, SMOOTHING)), rel=1e-12)
    assert values(known[NOW]) == pytest.approx(values(after_all(PRIOR, [outcome(), *many], SMOOTHING)), abs=1e-12)


async def test_an_infinite_average_is_finite_again_after_the_next_call(lasting: Backend) -> None:
    store = lasting.statistics()
    await store.observe([outcome(ms=math.inf)])

    await store.observe([outcome()])

    known = (await store.read())[LOG]
    assert known.calls == 2
    assert known.latency < PRIOR.latency


async def test_several_processes_count_together(backend: Backend) -> None:
    for store in (backend.statistics(), backend.statistics()):
        await store.observe([outcome()])

    assert (await backend.statistics().read())[LOG].calls == 2


async def test_names_of_any_script_and_with_any_sign_are_told_apart(backend: Backend) -> None:
    store = backend.statistics()
    tools = [
        ToolId("a/b", "c"),
        ToolId("a", "b/c"),
        ToolId("世界", 'né "e" \'\\'),
        ToolId("a b", "c"),
        ToolId("a", "b c"),
    ]

    await store.observe([outcome(tool) for tool in tools])

    assert {tool: known.calls for tool, known in (await store.read()).items()} == dict.fromkeys(tools, 1)


async def test_observing_nothing_changes_nothing(backend: Backend) -> None:
    await backend.statistics().observe([])

    assert await backend.statistics().read() == {}


async def test_concurrent_updates_of_a_tool_equal_some_order_of_them(backend: Backend) -> None:
    stores = [backend.statistics() for _ in range(4)]
    each = [outcome(ms=10), outcome(success=False, ms=700), outcome(failure="server", ms=5_000), outcome(ms=90)]

    await asyncio.gather(*(store.observe([one]) for store, one in zip(stores, each, strict=True)))

    got = values((await stores[0].read())[LOG])
    assert any(
        got == pytest.approx(values(after_all(PRIOR, order, SMOOTHING)), rel=1e-12) for order in permutations(each)
    )


@pytest.mark.parametrize(("tasks", "updates", "batch"), [(8, 25, 1), (64, 1_000, 50)])
async def test_no_update_of_many_tasks_is_lost(backend: Backend, tasks: int, updates: int, batch: int) -> None:
    """All calls of a tool end alike, so that every order of them gives the same averages."""
    stores = [backend.statistics(SLOW) for _ in range(4)]
    kinds = {LOG: outcome(ms=40), NOW: outcome(NOW, failure="server", ms=900)}

    async def calls(task: int) -> None:
        for start in range(0, updates, batch):
            tools = [(LOG, NOW)[(task + number) % 2] for number in range(start, start + batch)]
            await stores[task % 4].observe([kinds[tool] for tool in tools])

    await asyncio.gather(*map(calls, range(tasks)))

    known = await stores[0].read()
    assert sum(each.calls for each in known.values()) == tasks * updates
    for tool, kind in kinds.items():
        sequential = after_all(PRIOR, [kind] * (tasks * updates // 2), SLOW)
        assert values(known[tool]) == pytest.approx(values(sequential), rel=1e-9)
