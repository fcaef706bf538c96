"""Definitions that several connections list alike are in memory once, and nothing else is shared."""

from __future__ import annotations

import gc
import json
from typing import Any

import pytest

from pegboard.catalog.ingest import tools_from_list_result
from pegboard.model import Tool
from pegboard.upstreams.shared_tools import SharedTools

pytestmark = pytest.mark.requirement("023.shared")

SCHEMA = {"type": "object", "properties": {"limit": {"type": "integer", "default": 1}}}


def listed(server: str = "notes", **changes: Any) -> list[Tool]:
    """As they arrive on a connection: objects of their own."""
    definition = {"name": "find", "description": "Find notes", "inputSchema": SCHEMA} | changes
    return tools_from_list_result(server, [{"tools": [json.loads(json.dumps(definition))]}])


def test_equal_definitions_are_one_object() -> None:
    shared = SharedTools()
    [first], [second] = shared.of(listed()), shared.of(listed())
    assert first is second


@pytest.mark.parametrize(
    "other",
    [
        listed(description="Find notes of ann"),
        listed("other"),
        listed(inputSchema={"properties": SCHEMA["properties"], "type": "object"}),
        listed(inputSchema=json.loads(json.dumps(SCHEMA).replace("1", "1.0"))),
        listed(inputSchema=json.loads(json.dumps(SCHEMA).replace("1", "true"))),
    ],
    ids=["text", "server", "order of keys", "1.0", "true"],
)
def test_a_definition_that_differs_in_a_byte_stays_a_users_own(other: list[Tool]) -> None:
    shared = SharedTools()
    [first] = shared.of(listed())
    [second] = shared.of(other)
    assert second is other[0]
    assert second is not first


def test_a_definition_is_gone_with_the_last_connection_that_lists_it() -> None:
    shared = SharedTools()
    kept = shared.of(listed())
    del kept
    gc.collect()
    assert not shared._known
