"""Events as log records, and decisions as spans. Neither has a text that a user or a server wrote."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields
from functools import cache
from http import HTTPStatus
from itertools import islice
from operator import attrgetter
from typing import Any

from pegboard import events
from pegboard.events import (
    BudgetUsed,
    CallFinished,
    CallRejected,
    ConfigurationRefused,
    ContentSuspected,
    DefinitionChanged,
    DefinitionSuspected,
    Event,
    ModelRequestServed,
    OutcomeReported,
    ProgramFinished,
    RouteDecided,
    ServerCrowds,
)
from pegboard.telemetry.otel.conventions import DATA_SOURCE, DOCUMENTS, MODEL, OPERATION, QUERY, RETRIEVAL
from pegboard.telemetry.trace_spans import Attribute

WARNINGS = frozenset(
    {
        BudgetUsed,
        CallRejected,
        ConfigurationRefused,
        ContentSuspected,
        DefinitionChanged,
        DefinitionSuspected,
        ServerCrowds,
    }
)
FAILURES: Mapping[type[Event], Callable[[Any], bool]] = {
    CallFinished: lambda event: not event.success,
    ModelRequestServed: lambda event: event.status >= HTTPStatus.BAD_REQUEST or bool(event.failure),
    OutcomeReported: lambda event: not event.success,
    ProgramFinished: lambda event: event.outcome != "ok",
}
"""Events that are warnings if something went wrong."""
LEFT_OUT = frozenset({"at", "query", "scores", "candidates"})
QUOTES = frozenset({"ModelRequestServed", "ServerChanged", "ConfigurationRefused"})
"""Events whose `reason` may quote what was received."""
MOST_ITEMS = 30
LONGEST = 200
WORD = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
SOURCE = "pegboard"


def log_values(event: Event) -> tuple[Any, ...]:
    """The time of an event, and the values of its other fields that a log record has, for `log_attributes`."""
    return _reader(event.kind)(event)


def log_attributes(kind: str, values: Sequence[Any]) -> dict[str, Any]:
    """
    >>> from pegboard.events import OutcomeReported
    >>> reported = OutcomeReported(at=0.0, decision="d1", tool="jira/find", success=True)
    >>> log_attributes(reported.kind, log_values(reported))
    {'pegboard.decision': 'd1', 'pegboard.tool': 'jira/find', 'pegboard.success': True}
    """
    found: dict[str, Any] = {}
    for name, value in zip(_names(kind), values[1:], strict=True):
        if isinstance(value, str):
            if value:
                found[f"pegboard.{name}"] = value[:LONGEST]
        elif isinstance(value, list | tuple):
            if value:
                found[f"pegboard.{name}"] = [str(each)[:LONGEST] for each in value[:MOST_ITEMS]]
        elif value is not None:
            found[f"pegboard.{name}"] = value
    return found


@cache
def _reader(kind: str) -> Callable[[Event], tuple[Any, ...]]:
    return attrgetter("at", *_names(kind))


@cache
def _names(kind: str) -> tuple[str, ...]:
    left_out = LEFT_OUT | ({"reason"} if kind in QUOTES else frozenset())
    return tuple(each.name for each in fields(getattr(events, kind)) if each.name not in left_out)


@cache
def event_name(kind: str) -> str:
    """
    >>> event_name("RouteDecided")
    'pegboard.route_decided'
    """
    return f"pegboard.{WORD.sub('_', kind).lower()}"


def retrieval_attributes(event: RouteDecided, *, content: bool) -> dict[str, Attribute]:
    """The attributes of a decision's span; with ``content``, also the tools that were found, and the query if it is
    known."""
    found: dict[str, Attribute] = {
        OPERATION: RETRIEVAL,
        DATA_SOURCE: SOURCE,
        "pegboard.profile": event.profile,
        "pegboard.decision": event.turn_id,
        "pegboard.tools.candidates": len(event.candidates),
        "pegboard.tools.offered": len(event.active_set),
        "pegboard.tokens.offered": event.phase2_tokens,
    }
    if event.encoder:
        found[MODEL] = event.encoder
    if content:
        documents = [{"id": name, "score": score} for name, score in islice(event.scores.items(), MOST_ITEMS)]
        found[DOCUMENTS] = json.dumps(documents)
        if event.query:
            found[QUERY] = event.query
    return found


def is_warning(event: Event) -> bool:
    """Whether its severity in the logs data model is WARN, not INFO."""
    kind = type(event)
    failed = FAILURES.get(kind)
    return failed(event) if failed is not None else kind in WARNINGS
