from __future__ import annotations

import io
import json
import logging

import pytest

from pegboard.events import CallFinished, ModelRequestServed, RouteDecided
from pegboard.stores import MemoryEvents
from pegboard.telemetry.event_log import AccessLog, FanOut, JsonLinesEvents, LogEvents

FINISHED = CallFinished(at=1.5, tool="weather/get_tides", success=True, latency_ms=2.0)
DECIDED = RouteDecided(
    at=1.0,
    turn_id="turn\n1",
    profile="hybrid",
    query_embedding_hash="ab",
    candidates=("a/b",),
    scores={"a/b": 0.5},
    gated_out_by_state=(),
    active_set=("a/b",),
    phase1_tokens=1,
    phase2_tokens=2,
    latency_ms=3.0,
)


SERVED = ModelRequestServed(
    at=1.0,
    upstream="openai",
    format="openai",
    model="some\nmodel" + "x" * 1000,
    key="team",
    status=200,
    outcome="failed",
    reason="'my question' cannot be read",
    tools=4,
    kept=4,
    tokens_before=0,
    tokens_after=0,
    decision="",
    called=("one",),
    added_ms=1.0,
    latency_ms=2.0,
    failure="request_not_understood",
)


def test_each_event_is_one_line_of_json_that_is_there_at_once() -> None:
    stream = io.StringIO()
    sink = JsonLinesEvents(stream)

    sink.emit(FINISHED)
    sink.emit(DECIDED)

    lines = stream.getvalue().splitlines()
    assert [json.loads(line)["event"] for line in lines] == ["CallFinished", "RouteDecided"]
    assert json.loads(lines[1])["scores"] == {"a/b": 0.5}


def test_events_are_logged_for_those_who_debug(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO, "pegboard.events"):
        LogEvents().emit(FINISHED)
    assert caplog.records == []

    with caplog.at_level(logging.DEBUG, "pegboard.events"):
        LogEvents().emit(FINISHED)
    assert json.loads(caplog.records[0].getMessage())["tool"] == "weather/get_tides"


def test_every_sink_gets_every_event() -> None:
    sinks = [MemoryEvents(), MemoryEvents()]

    FanOut(sinks).emit(FINISHED)

    assert [sink.of(CallFinished) for sink in sinks] == [[FINISHED], [FINISHED]]


def test_a_model_request_is_one_line_that_quotes_nothing(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO, "pegboard.access"):
        AccessLog().emit(SERVED)
        AccessLog().emit(FINISHED)

    (record,) = caplog.records
    assert "\n" not in record.getMessage()
    assert len(record.getMessage()) < 400
    assert record.getMessage().endswith("(request_not_understood)")
    assert record.__dict__["fields"]["key"] == "team"
    assert "question" not in str(record.__dict__)
