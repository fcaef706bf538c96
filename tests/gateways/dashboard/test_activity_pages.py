"""The stream of decisions: whose it is, and that it is alive."""

from __future__ import annotations

from typing import Any

import pytest

from pegboard.activity_entries import ActivityEntry, ActivityQuery
from pegboard.errors import StoreError
from pegboard.gateways.dashboard import activity_pages
from pegboard.gateways.dashboard.activity_pages import ActivityPages
from pegboard.gateways.dashboard.page_templates import PageTemplates
from pegboard.stores import MemoryActivity
from pegboard.telemetry.activity_recorder import ActivityRecorder


@pytest.mark.parametrize("params", [{}, {"key": "nobody"}], ids=["all", "a filter that nothing passes"])
async def test_a_viewer_that_is_refused_sees_no_more_however_much_happens(
    monkeypatch: pytest.MonkeyPatch, params: dict[str, str]
) -> None:
    monkeypatch.setattr(activity_pages, "ALIVE", 0.0)
    recorder, checks, turns = ActivityRecorder(), 0, 0

    async def still() -> bool:
        nonlocal checks
        checks += 1
        return checks <= 3

    def ends() -> bool:
        """One more decision before each turn."""
        nonlocal turns
        turns += 1
        for watcher in recorder._watchers:
            watcher.put_nowait(ActivityEntry(id=str(turns), at=1.0, door="mcp", kind="list", key="ann"))
        return turns > 100

    async with recorder.running(MemoryActivity()):
        no_archive: Any = None
        pages = ActivityPages(recorder, no_archive, lambda: 0.0)
        rows = [row async for row in pages.stream(params, PageTemplates(), still=still, ends=ends)]

    assert (checks, rows.count(": alive\n\n")) == (4, 3)
    assert len(rows) == (4 if params else 7)


async def test_a_stream_ends_where_the_store_does_not_answer_so_that_the_browser_tries_again() -> None:
    class Down(MemoryActivity):
        async def find(self, query: ActivityQuery, most: int) -> list[ActivityEntry]:
            raise StoreError("The store does not answer.")

    async def still() -> bool:
        return True

    recorder = ActivityRecorder()
    async with recorder.running(Down()):
        no_archive: Any = None
        pages = ActivityPages(recorder, no_archive, lambda: 0.0)
        rows = [row async for row in pages.stream({}, PageTemplates(), still=still, ends=lambda: False)]

    assert rows == ["retry: 2000\n\n"]
    assert not recorder._watchers
