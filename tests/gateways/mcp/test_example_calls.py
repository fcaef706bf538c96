"""Calls that a search shows: they fit the schema of the tool, of real ones too, wherever a placeholder can."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from pegboard.catalog.ingest.mcp import tools_from_list_result
from pegboard.gateways.mcp.gateway.example_calls import example_arguments, signature
from pegboard.routing import check_arguments_now
from pegboard.testing import fake_tool
from servers.scripted import TOOLS

pytestmark = pytest.mark.requirement("B9")

SCHEMAS: dict[str, tuple[dict[str, Any], Any]] = {
    "text": ({"type": "string"}, "<it>"),
    "number": ({"type": "number", "minimum": 5}, 5),
    "flag": ({"type": "boolean"}, True),
    "enumeration": ({"enum": ["a", "b"]}, "a"),
    "constant": ({"const": 3}, 3),
    "default": ({"type": "string", "default": "x"}, "x"),
    "nullable": ({"type": ["integer", "null"]}, 1),
    "list": ({"type": "array", "items": {"type": "integer"}}, [1]),
    "reference": ({"$ref": "#/$defs/Place"}, {"city": "<city>"}),
    "branch": ({"anyOf": [{"type": "integer"}, {"type": "null"}]}, 1),
    "anything": ({}, "<it>"),
}
PLACE = {"type": "object", "properties": {"city": {"type": "string"}, "zip": {}}, "required": ["city"]}


@pytest.mark.parametrize("kind", SCHEMAS)
def test_an_example_fits_the_schema(kind: str) -> None:
    schema, expected = SCHEMAS[kind]
    whole = {"type": "object", "properties": {"it": schema}, "required": ["it"], "$defs": {"Place": PLACE}}
    tool = fake_tool("x", schema=whole)

    assert example_arguments(tool) == {"it": expected}
    check_arguments_now(tool, example_arguments(tool))


def test_examples_of_recorded_tools_fit_their_schemas(data: Path) -> None:
    recorded = tools_from_list_result("s", [json.loads((data / "mcp_tools_list.json").read_text())])
    scripted = tools_from_list_result("s", [{"tools": [tool.model_dump(by_alias=True, mode="json") for tool in TOOLS]}])

    assert recorded
    for tool in (*recorded, *scripted):
        check_arguments_now(tool, example_arguments(tool))


@pytest.mark.parametrize(
    "schema",
    [
        {"$ref": "#/properties/a"},
        {"$ref": "https://elsewhere.example/schema"},
        {"$ref": "#/$defs/gone"},
        {"anyOf": "no list"},
        {"type": "object", "properties": {"a": 1}, "required": "a"},
        True,
    ],
)
def test_a_schema_that_leads_nowhere_ends_in_a_placeholder(schema: Any) -> None:
    whole = {"type": "object", "properties": {"a": schema}, "required": ["a", 7]}

    assert example_arguments(fake_tool("x", schema=whole)) in ({"a": "<a>"}, {"a": {}})


@pytest.mark.parametrize("required", [True, "a", {"a": True}, 7, None])
def test_what_is_required_in_no_list_is_optional(required: Any) -> None:
    inner = {"type": "object", "properties": {"b": {"type": "string"}}, "required": required}
    tool = fake_tool("save", schema={"properties": {"a": inner}, "required": required})

    assert signature("save", tool) == "save(a?: {b?: string})"
