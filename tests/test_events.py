from __future__ import annotations

import dataclasses
import json

from pegboard.events import CallFinished, CallRejected, DefinitionChanged, Event, RouteDecided, ServerChanged

EVENTS: list[Event] = [
    CallRejected(at=1.0, tool="fly", reason="tool_not_available"),
    CallFinished(at=2.0, tool="walk", success=True, latency_ms=3.5),
    DefinitionChanged(at=2.5, tool="a/walk", approved="1", seen="2", held_back=True),
    ServerChanged(at=3.0, server="weather", state="ready", tools=2),
]


def test_an_event_becomes_json_that_names_its_kind() -> None:
    as_json = [json.loads(json.dumps(event.as_dict())) for event in EVENTS]

    assert [each["event"] for each in as_json] == [
        "CallRejected",
        "CallFinished",
        "DefinitionChanged",
        "ServerChanged",
    ]
    assert as_json[3] == {
        "event": "ServerChanged",
        "at": 3.0,
        "server": "weather",
        "state": "ready",
        "reason": "",
        "tools": 2,
    }


def test_the_event_of_a_decision_has_the_seeds_fields() -> None:
    """Tool Attention §5.7."""
    fields = {field.name for field in dataclasses.fields(RouteDecided)}

    assert fields >= {
        "turn_id",
        "query_embedding_hash",
        "candidates",
        "scores",
        "gated_out_by_state",
        "active_set",
        "phase1_tokens",
        "phase2_tokens",
        "latency_ms",
    }
