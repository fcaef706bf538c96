from __future__ import annotations

from typing import Any

import pytest

from pegboard import Tool, ToolId
from pegboard.errors import ArgumentsInvalid
from pegboard.gateways.mcp.gateway.toolset_view import without_arguments
from pegboard.routing import check_arguments_now


def allowed(schema: dict[str, Any], arguments: dict[str, Any]) -> bool:
    try:
        check_arguments_now(Tool(id=ToolId("a", "b"), input_schema=schema), arguments)
    except ArgumentsInvalid:
        return False
    return True


ISSUE = {
    "type": "object",
    "properties": {"owner": {"type": "string"}, "title": {"type": "string"}},
    "required": ["owner", "title"],
    "additionalProperties": False,
}


def test_a_preset_argument_is_neither_shown_nor_required_nor_accepted() -> None:
    schema = dict(without_arguments(ISSUE, {"owner"}))

    assert schema == {
        "type": "object",
        "properties": {"title": {"type": "string"}},
        "required": ["title"],
        "additionalProperties": False,
    }
    assert allowed(schema, {"title": "x"})
    assert not allowed(schema, {"title": "x", "owner": "me"})
    assert not allowed(schema, {})


def test_the_schema_that_was_given_is_left_as_it_is() -> None:
    before = repr(ISSUE)

    without_arguments(ISSUE, {"owner"})

    assert repr(ISSUE) == before


@pytest.mark.parametrize(
    "rule",
    [
        {"anyOf": [{"required": ["owner"]}, {"required": ["team"]}]},
        {"oneOf": [{"required": ["owner"]}, {"required": ["title"]}]},
        {
            "oneOf": [
                {"properties": {"owner": {"const": "me"}}, "required": ["owner"]},
                {"properties": {"owner": {"const": "us"}}, "required": ["owner"]},
            ]
        },
        {"allOf": [{"required": ["owner"]}]},
        {"allOf": [{"$ref": "#/$defs/owned"}], "$defs": {"owned": {"required": ["owner"]}}},
        {"$ref": "#/$defs/owned", "$defs": {"owned": {"properties": {"owner": {}}, "required": ["owner"]}}},
        {"$ref": "#"},
        {"$ref": "#/nowhere"},
        {"dependentRequired": {"title": ["owner"]}},
        {"if": {"required": ["title"]}, "then": {"required": ["owner"]}},
        {"not": {"required": ["title"]}},
        {"minProperties": 2},
        {"properties": None, "anyOf": [True]},
    ],
)
def test_what_only_the_preset_argument_satisfies_is_left_to_the_server(rule: dict[str, Any]) -> None:
    schema = dict(without_arguments({"type": "object", **rule}, {"owner"}))

    assert allowed(schema, {"title": "x"})


def test_what_the_other_arguments_must_be_is_still_asked_for() -> None:
    rule = {"oneOf": [{"required": ["owner", "title"]}, {"required": ["owner", "number"]}]}

    schema = dict(without_arguments(rule, {"owner"}))

    assert allowed(schema, {"number": 3})
    assert not allowed(schema, {})
