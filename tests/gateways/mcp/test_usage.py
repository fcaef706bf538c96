"""Counts of calls, and the tools that they put at hand."""

from __future__ import annotations

import logging
from collections.abc import Sequence

import pytest

from pegboard.errors import ConfigError
from pegboard.gateways.mcp.usage import LEAST_CALLS, Usage
from pegboard.model import Outcome, ToolId
from pegboard.stores import MemoryStatistics


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
