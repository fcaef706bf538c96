"""Events as log records, and decisions as spans. Neither has a text that a user or a server wrote."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import fields
from functools import cache
from itertools import islice
from operator import attrgetter
from typing import Any

from pegboard.events import (
    BudgetUsed,
    ConfigurationRefused,
    ContentSuspected,
    DefinitionChanged,
    DefinitionSuspected,
    Event,
    RouteDecided,
    ServerCrowds,
)
from pegboard.telemetry.otel.conventions import DATA_SOURCE, DOCUMENTS, MODEL, OPERATION, QUERY, RETRIEVAL
from pegboard.telemetry.trace_spans import Attribute

WARNINGS = (BudgetUsed, ConfigurationRefused, ContentSuspected, DefinitionChanged, DefinitionSuspected, ServerCrowds)
LEFT_OUT = frozenset({"at", "query", "scores", "candidates"})
QUOTES = frozenset({"ModelRequestServed", "ServerChanged", "ConfigurationRefused"})
"""Events whose `reason` may quote what was received."""
MOST_ITEMS = 30
LONGEST = 200
WORD = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
SOURCE = "pegboard"


def log_attributes(event: Event) -> dict[str, Any]:
    """
    >>> from pegboard.events import OutcomeReported
    >>> log_attributes(OutcomeReported(at=0.0, decision="d1", tool="jira/find", success=True))
    {'pegboard.decision': 'd1', 'pegboard.tool': 'jira/find', 'pegboard.success': True}
    """
    attributes, read = _reader(type(event))
    found: dict[str, Any] = {}
    for attribute, value in zip(attributes, read(event)[1:], strict=True):
        if isinstance(value, str):
            if value:
                found[attribute] = value[:LONGEST]
        elif isinstance(value, tuple):
            if value:
                found[attribute] = [str(each)[:LONGEST] for each in value[:MOST_ITEMS]]
        elif value is not None:
            found[attribute] = value
    return found


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


Reader = tuple[tuple[str, ...], Callable[[Event], tuple[Any, ...]]]


def _reader(kind: type[Event]) -> Reader:
    """The attributes of a kind of event, and what reads their values, after its time: of one alone it would not make a
    tuple."""
    found = _KNOWN.get(kind)
    if found is None:
        left_out = LEFT_OUT | ({"reason"} if kind.__name__ in QUOTES else frozenset())
        names = [each.name for each in fields(kind) if each.name not in left_out]
        found = _KNOWN[kind] = tuple(f"pegboard.{name}" for name in names), attrgetter("at", *names)
    return found


_KNOWN: dict[type[Event], Reader] = {}


def severity(event: Event) -> int:
    """The SeverityNumber of the logs data model: INFO or WARN."""
    return 13 if isinstance(event, WARNINGS) else 9
