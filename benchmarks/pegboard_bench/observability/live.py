"""The live view while decisions come, and retention at the same time."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping
from dataclasses import replace

from pegboard.activity_entries import ActivityQuery
from pegboard.clock import SYSTEM_CLOCK
from pegboard.events import ToolsSearched
from pegboard.gateways.dashboard.activity_pages import ActivityPages
from pegboard.gateways.dashboard.page_templates import PageTemplates
from pegboard.protocols import Activity, Archive
from pegboard.telemetry.activity_recorder import ActivityRecorder

RATE = 200
"""Decisions a second."""
WAIT_SECONDS = 60.0


async def live_figures(store: Activity, archive: Archive, seconds: float, before: float) -> Mapping[str, float]:
    """What a viewer of the live page gets of ``RATE`` decisions a second, while all before a moment are removed."""
    recorder = ActivityRecorder()
    async with recorder.running(store):
        pages, seen, ended = ActivityPages(recorder, archive, time.time), list[str](), asyncio.Event()
        delays: list[float] = []

        async def watch() -> None:
            rows = pages.stream({"key": "live"}, PageTemplates(), still=_always, ends=ended.is_set)
            async for row in rows:
                if row.startswith("event: entry"):
                    seen.append(row.partition("id: ")[2].partition("\n")[0])
                elif row.startswith("event: behind"):
                    seen.append("behind")

        async def removed() -> tuple[int, float]:
            began = time.perf_counter()
            return await store.remove(before), time.perf_counter() - began

        watcher, removal = asyncio.create_task(watch()), asyncio.create_task(removed())
        event = ToolsSearched(at=0.0, found=3, by_words=False, key="live")
        began, sent = time.perf_counter(), 0
        while (passed := time.perf_counter() - began) < seconds or not removal.done():
            while sent < passed * RATE:
                recorder.emit(replace(event, at=SYSTEM_CLOCK.time(), conversation=f"{sent:06}"))
                sent += 1
            ticked = time.perf_counter()
            await asyncio.sleep(0.01)
            delays.append(time.perf_counter() - ticked - 0.01)
        gone, took = await removal
        end = time.perf_counter() + WAIT_SECONDS
        while len(set(seen)) < sent and time.perf_counter() < end:  # noqa: ASYNC110
            await asyncio.sleep(0.05)
        ended.set()
        await watcher
        stored = {each.id for each in await store.find(ActivityQuery(key="live"), sent + 1)}
    return {
        "live_rate": sent / passed,
        "live_sent": sent,
        "live_seen": len(stored & set(seen)),
        "live_gaps": seen.count("behind"),
        "live_lost": recorder.lost,
        "removed": gone,
        "removed_a_second": gone / took,
        "loop_held_ms": max(delays) * 1_000,
    }


async def _always() -> bool:
    return True
