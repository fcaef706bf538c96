"""The CPU time in a gateway of being observed for a model request, by itself: less depends on what else the machine
does than between gateways. What the processes behind it take is not in it."""

from __future__ import annotations

import asyncio
import statistics
import time
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from starlette.types import Message, Receive, Scope, Send

from pegboard.events import Event, ModelRequestServed, RouteDecided
from pegboard.gateways.http_spans import TracedApp
from pegboard.gateways.llm.proxy.model_spans import ModelSpans
from pegboard.settings.otel_settings import SIGNALS
from pegboard.stores import SqliteActivity
from pegboard.telemetry.activity_recorder import ActivityRecorder
from pegboard.telemetry.otel.export import OtelExport
from pegboard.telemetry.otel.export_options import ExportOptions
from pegboard.token_usage import TokenUsage
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
    return statistics.quantiles(took, n=4, method="inclusive")[0]


async def otel_cpu_us(collector: str, batches: int, *, recorded: bool = True) -> float:
    """Microseconds of CPU that OpenTelemetry takes for a request, the lower quartile of batches. Of one that is
    ``recorded``: its spans, log records and durations, and to hand them on; of another, its durations."""
    options = ExportOptions(endpoint=collector, signals=SIGNALS, ratio=float(recorded), batch_seconds=0.05)
    export, took = OtelExport(options), list[float]()
    spans, context = ModelSpans(export.tracer, export.histograms), _context()
    events = [tuple(events_of(number)) for number in range(AT_ONCE)]

    async def served(scope: Scope, receive: Receive, send: Send) -> None:
        decided, ended = events[scope["number"]]
        export.emit(decided)
        with spans.traced(context, [(b"content-type", b"application/json")]):
            await send({"type": "http.response.start", "status": 200})
        export.emit(ended)

    async def dropped(message: Message) -> None: ...

    async def plain(scope: Scope, receive: Receive, send: Send) -> None:
        await send({"type": "http.response.start", "status": 200})

    async def ran(app: Any) -> float:
        began = time.process_time()
        for number in range(AT_ONCE):
            scope = {"type": "http", "method": "POST", "path": "/", "headers": [], "number": number}
            await app(scope, None, dropped)
        while export._waiting:  # noqa: ASYNC110
            await asyncio.sleep(0.1)
        return time.process_time() - began

    export.start()
    for _ in range(batches):
        took.append((await ran(TracedApp(served, export.tracer)) - await ran(plain)) / AT_ONCE * 1e6)
    await asyncio.to_thread(export.close)
    return statistics.quantiles(took, n=4, method="inclusive")[0]


def _context() -> Any:
    """As much of a request's context as its span shows."""
    upstream = SimpleNamespace(host="127.0.0.1", port=80, name="openai", format="openai")
    request = SimpleNamespace(model="some-model", streams=False, conversation="a", tools=range(TOOLS))
    filtered = SimpleNamespace(kept=SimpleNamespace(places=range(OFFERED)), tokens_before=20_000, tokens_after=1_500)
    return SimpleNamespace(
        target=SimpleNamespace(upstream=upstream, path="/v1/chat/completions"),
        method="POST",
        known=SimpleNamespace(request=request, outcome="filtered", filtered=filtered),
        status=200,
        answer="an-id",
        first_chunk_s=0.5,
        used=TokenUsage(input=2_000, output=40),
    )


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
