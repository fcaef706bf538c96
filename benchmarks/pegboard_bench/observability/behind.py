"""The CPU time of activity behind a model request, by itself: less depends on what else the machine does than between
gateways."""

from __future__ import annotations

import statistics
import time
from collections.abc import Iterator
from pathlib import Path

from pegboard.events import Event, ModelRequestServed, RouteDecided
from pegboard.stores import SqliteActivity
from pegboard.telemetry.activity_recorder import ActivityRecorder
from pegboard_bench.llm.body import TOOLS, tool

CANDIDATES, OFFERED = 20, 8
AT_ONCE = 75
"""Requests of a quarter of a second, after which they are written."""


async def activity_cpu_us(folder: Path, batches: int) -> float:
    """Microseconds of CPU that a request's activity takes, to be made of its events and to be stored; the lower
    quartile of batches."""
    recorder, took = ActivityRecorder(), list[float]()
    store = SqliteActivity(folder / "behind.sqlite")
    async with recorder.running(store):
        for batch in range(batches):
            for number in range(batch * AT_ONCE, (batch + 1) * AT_ONCE):
                for event in events_of(number):
                    recorder.emit(event)
            began = time.process_time()
            await recorder.flush()
            took.append((time.process_time() - began) / AT_ONCE * 1e6)
    store.close()
    return statistics.quantiles(took, n=4)[0]


def events_of(number: int) -> Iterator[Event]:
    """What a model request tells that has the tools of `chat_request`; each is in a conversation of its own."""
    at, names = float(number), [f"/{tool(each)['function']['name']}" for each in range(CANDIDATES)]
    yield RouteDecided(
        at=at,
        turn_id=str(number),
        profile="keyword",
        query_embedding_hash="",
        candidates=tuple(names),
        scores={name: round(1 / (rank + 1), 4) for rank, name in enumerate(names)},
        gated_out_by_state=(),
        active_set=tuple(names[:OFFERED]),
        phase1_tokens=0,
        phase2_tokens=1_500,
        latency_ms=1.5,
    )
    yield ModelRequestServed(
        at=at,
        upstream="openai",
        format="openai",
        model="some-model",
        key="team",
        status=200,
        outcome="filtered",
        reason="",
        tools=TOOLS,
        kept=OFFERED,
        tokens_before=20_000,
        tokens_after=1_500,
        decision=str(number),
        called=(names[0][1:],),
        added_ms=2.0,
        latency_ms=900.0,
        conversation=f"{number:012x}",
    )
