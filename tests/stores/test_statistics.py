"""One contract for every store of statistics."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from pegboard.model import Outcome, ToolId, ToolStatistics
from pegboard.stores import MemoryStatistics, SqliteStatistics

LOG, NOW = ToolId("git", "log"), ToolId("time", "now")


@pytest.fixture(params=["memory", "sqlite"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Any]:
    if request.param == "memory":
        yield MemoryStatistics()
        return
    store = SqliteStatistics(tmp_path / "state.sqlite")
    yield store
    store.close()


def outcome(tool: ToolId, *, success: bool = True) -> Outcome:
    return Outcome(tool=tool, success=success, latency_ms=1.0)


async def test_calls_and_successes_add_up(store: Any) -> None:
    assert await store.read() == {}

    await store.observe([outcome(LOG), outcome(LOG, success=False), outcome(NOW)])
    await store.observe([outcome(LOG)])

    assert await store.read() == {
        LOG: ToolStatistics(calls=3, successes=2),
        NOW: ToolStatistics(calls=1, successes=1),
    }


async def test_several_processes_count_together(tmp_path: Path, request: pytest.FixtureRequest) -> None:
    stores = [SqliteStatistics(tmp_path / "state.sqlite") for _ in range(2)]
    for store in stores:
        request.addfinalizer(store.close)
        await store.observe([outcome(LOG)])

    assert await stores[0].read() == {LOG: ToolStatistics(calls=2, successes=2)}
