"""Counts of calls, and the tools that they put at hand."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence

import pytest

from failing import Failing
from pegboard import usage as usages
from pegboard.errors import ConfigError, ValueRefused
from pegboard.model import Outcome, ToolId
from pegboard.routing.economics import Knowledge
from pegboard.stores import MemoryStatistics
from pegboard.testing import FakeClock
from pegboard.usage import LEAST_CALLS, Usage


def outcomes(name: str, count: int, *, success: bool = True, server: str = "s") -> list[Outcome]:
    return [Outcome(tool=ToolId(server, name), success=success, latency_ms=1.0)] * count


async def counted(*batches: Sequence[Outcome]) -> Usage:
    usage = Usage(MemoryStatistics())
    for batch in batches:
        for outcome in batch:
            usage.observe(outcome)
    await usage.flush()
    return usage


class Broken(MemoryStatistics):
    async def observe(self, outcomes: Sequence[Outcome]) -> None:
        raise ConfigError("The disk is full.", remedy="Empty it.")

    async def read(self) -> dict[ToolId, object]:  # type: ignore[override]
        raise ConfigError("The disk is full.", remedy="Empty it.")


class Refusing(MemoryStatistics):
    """It keeps no name that is too long."""

    async def observe(self, outcomes: Sequence[Outcome]) -> None:
        if any(len(each.tool.name) > 9 for each in outcomes):
            raise ValueRefused("The name is too long.", remedy="Check the value.")
        await super().observe(outcomes)


async def test_a_name_that_the_store_refuses_keeps_no_other_from_being_counted(
    caplog: pytest.LogCaptureFixture,
) -> None:
    usage = Usage(Refusing())
    for outcome in [*outcomes("a", 6), *outcomes("x" * 10, 2), *outcomes("b", 5)]:
        usage.observe(outcome)
    await usage.flush()
    await usage.flush()

    assert [tool.name for tool in await usage.most_called(5, ["s"])] == ["a", "b"]
    assert [each.message for each in caplog.records] == ["2 calls could not be counted: the store refuses their names"]


@pytest.mark.requirement("002.usage-data")
async def test_the_most_called_tools_come_first_and_names_decide_between_equals() -> None:
    usage = await counted(outcomes("b", 7), outcomes("a", 7), outcomes("c", 9), outcomes("d", 6))

    assert [tool.name for tool in await usage.most_called(3, ["s"])] == ["c", "a", "b"]


async def test_a_few_calls_and_calls_that_failed_make_no_habit() -> None:
    usage = await counted(
        outcomes("few", LEAST_CALLS - 1), outcomes("broken", 100, success=False), outcomes("enough", LEAST_CALLS)
    )

    assert [tool.name for tool in await usage.most_called(5, ["s"])] == ["enough"]


async def test_tools_of_servers_that_are_not_there_any_more_take_no_place() -> None:
    usage = await counted(outcomes("a", 50, server="gone"), outcomes("b", 9), outcomes("c", 8))

    assert await usage.most_called(2, ["s"]) == [ToolId("s", "b"), ToolId("s", "c")]


async def test_none_are_asked_for_none_are_read() -> None:
    assert await Usage(Broken()).most_called(0, ["s"]) == []


async def test_what_was_observed_is_written_once() -> None:
    store = MemoryStatistics()
    usage = Usage(store)
    for outcome in outcomes("a", 3):
        usage.observe(outcome)
    await usage.flush()
    await usage.flush()

    assert (await store.read())[ToolId("s", "a")].calls == 3


async def test_what_a_store_that_is_down_was_not_told_is_written_when_it_is_back(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(usages, "MOST_WAITING", 4)
    store = Failing(MemoryStatistics())
    usage = Usage(store)
    store.down = True
    for name in "abc":
        for outcome in outcomes(name, 2):
            usage.observe(outcome)
        await usage.flush()
    assert await usage.most_called(3, ["s"]) == []
    store.down = False

    await usage.flush()
    await usage.flush()

    known = await store.read()
    assert {tool.name: statistics.calls for tool, statistics in known.items() if tool.name} == {"b": 2, "c": 2}
    assert caplog.records == [], "the breaker of the store says it"


@pytest.mark.parametrize("in_a_thread", [False, True])
async def test_what_was_being_written_when_the_counting_ended_is_written_once(in_a_thread: bool) -> None:
    class Slow(MemoryStatistics):
        def __init__(self) -> None:
            super().__init__()
            self.asked, self.go_on = asyncio.Event(), asyncio.Event()

        async def observe(self, outcomes: Sequence[Outcome]) -> None:
            written = self._written(outcomes)
            await (asyncio.shield(written) if in_a_thread else written)

        async def _written(self, outcomes: Sequence[Outcome]) -> None:
            self.asked.set()
            await self.go_on.wait()
            await super().observe(outcomes)

    store = Slow()
    usage = Usage(store)
    for outcome in outcomes("a", LEAST_CALLS):
        usage.observe(outcome)
    running = asyncio.create_task(usage.flush())
    await store.asked.wait()
    running.cancel()
    await asyncio.wait([running])
    usage.observe(*outcomes("b", 1))
    store.go_on.set()
    await usage.flush()
    known = await store.read()
    assert {tool.name: statistics.calls for tool, statistics in known.items() if tool.name} == {"a": 5, "b": 1}


async def test_a_store_that_fails_loses_counts_and_says_so(caplog: pytest.LogCaptureFixture) -> None:
    usage = Usage(Broken())
    usage.observe(*outcomes("a", 1))

    with caplog.at_level(logging.WARNING):
        await usage.flush()
        assert await usage.most_called(3, ["s"]) == []

    assert [record.message for record in caplog.records] == [
        "Calls could not be counted: The disk is full. Empty it.",
        "Counts of calls could not be read: The disk is full. Empty it.",
    ]


async def test_a_call_counts_for_its_tool_and_for_its_server_as_a_whole() -> None:
    store = MemoryStatistics()
    usage = Usage(store)
    for outcome in [*outcomes("a", 2), *outcomes("b", 1, success=False), *outcomes("c", 1, server="t")]:
        usage.observe(outcome)

    await usage.flush()

    known = await store.read()
    assert {str(tool): (each.calls, each.successes) for tool, each in known.items() if not tool.name} == {
        "s/": (3, 2),
        "t/": (1, 1),
    }


async def test_a_server_as_a_whole_is_no_tool_that_is_called_often() -> None:
    usage = await counted(outcomes("a", 9), outcomes("b", 9))

    assert [tool.name for tool in await usage.most_called(5, ["s"])] == ["a", "b"]


async def test_routing_knows_of_a_call_before_the_store_does() -> None:
    knowledge = Knowledge(None, FakeClock())
    usage = Usage(MemoryStatistics(), knowledge.observe)

    usage.observe(outcomes("a", 1, success=False)[0])

    assert {str(tool) for tool, _ in knowledge.changed_since(0)} == {"s/a", "s/"}


async def test_what_no_store_should_raise_does_not_end_the_counting(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = {"a": asyncio.Event(), "b": asyncio.Event()}

    class Odd(MemoryStatistics):
        async def observe(self, outcomes: Sequence[Outcome]) -> None:
            asked[outcomes[0].tool.name].set()
            raise KeyError("row")

    monkeypatch.setattr(usages, "FLUSH_SECONDS", 0)
    usage = Usage(Odd())
    running = asyncio.create_task(usage.run())
    async with asyncio.timeout(60):
        for name, event in asked.items():
            usage.observe(*outcomes(name, 1))
            await event.wait()
    assert "Calls could not be counted" in caplog.text
    running.cancel()
