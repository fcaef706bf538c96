from __future__ import annotations

import ast
from dataclasses import replace
from typing import Any

import pytest

from pegboard.programs.stubs import MOST_FIELDS, annotation, check_stub, parameters, result_shape, stub
from pegboard.testing import fake_tool

SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "note": {"type": ["string", "null"]},
        "path": {"type": "string"},
        "odd-name": {"type": "integer"},
        "order": {"enum": ["up", "down"]},
        "ids": {"type": "array", "items": {"$ref": "#/$defs/Id"}},
    },
    "required": ["path", "ids"],
    "$defs": {"Id": {"type": "integer"}},
}


@pytest.mark.requirement("programs.stubs")
def test_a_stub_has_the_required_arguments_first_and_what_comes_back() -> None:
    shape = {"type": "object", "properties": {"rows": {"type": "array", "items": {"type": "object", "properties": {
        "id": {"type": "integer"}}}}}}  # fmt: skip
    tool = replace(fake_tool("find", schema=SCHEMA), output_schema=shape)

    assert stub("find", tool) == (
        "async def find(path: str, ids: list[int], note: str | None = ..., order: Literal['up', 'down'] = ..., "
        '**{"odd-name": int = ...})'
        ' -> {"rows": list[{"id": int}]}'
    )


@pytest.mark.parametrize("closed", [True, False])
def test_what_a_program_is_checked_against_is_python(closed: bool) -> None:
    tool = fake_tool("find", schema=SCHEMA | ({"additionalProperties": False} if closed else {}))

    (function,) = ast.parse(check_stub("find", tool)).body

    assert isinstance(function, ast.AsyncFunctionDef)
    assert [each.arg for each in function.args.args] == ["path", "ids", "note", "order"]
    assert function.args.kwarg is not None, "an argument that Python cannot name can be given"


def test_a_tool_without_more_arguments_takes_no_others() -> None:
    schema = {"properties": {"a": {"type": "integer"}}, "additionalProperties": False}

    assert check_stub("f", fake_tool("f", schema=schema)) == "async def f(a: int = ...) -> Any: ..."


@pytest.mark.parametrize(
    ("schema", "said"),
    [
        (True, "Any"),
        ({"$ref": "#/$defs/Loop"}, "Any"),
        ({"$ref": "http://elsewhere"}, "Any"),
        ({"anyOf": [{"type": "string"}, {"type": "number"}]}, "str | float"),
        ({"enum": [f"v{at}" for at in range(40)]}, "str"),
        ({"enum": [{"a": 1}]}, "Any"),
        ({"anyOf": [{"type": "string"}] * 9}, "Any"),
        ({"type": ["string"] * 9}, "Any"),
        ({"const": "x"}, "Literal['x']"),
        ({"type": "no-such-type"}, "Any"),
        ({"type": 7}, "Any"),
    ],
)
def test_any_schema_has_a_python_type(schema: Any, said: str) -> None:
    assert annotation(schema, {"$defs": {"Loop": {"$ref": "#/$defs/Loop"}}}) == said


@pytest.mark.parametrize("schema", [None, {}, {"properties": 3}, {"properties": {"a": True}, "required": "a"}])
def test_a_broken_schema_breaks_no_stub(schema: Any) -> None:
    ast.parse(check_stub("f", fake_tool("f", schema=schema)))
    assert all(not each.required for each in parameters(schema))


def test_a_required_argument_that_python_cannot_name_is_shown_where_it_is_given() -> None:
    schema = {"properties": {"from": {"type": "string"}, "to": {"type": "string"}}, "required": ["from", "to"]}

    assert stub("send", fake_tool("send", schema=schema)) == 'async def send(to: str, **{"from": str})'


class Looked(dict[str, Any]):
    """A schema that counts how often it is looked at."""

    times = 0

    def get(self, key: str, default: Any = None) -> Any:
        self.times += key == "$ref"
        return super().get(key, default)


def test_many_options_and_fields_that_refer_back_are_not_looked_through() -> None:
    again = Looked({"$ref": "#/$defs/All"})
    fields = {f"field {at}": again for at in range(300)}
    options = {"anyOf": [again] * 300}

    assert annotation(options, {"$defs": {"All": options}}) == "Any"
    assert again.times == 0
    result_shape({"properties": fields, "$defs": {"All": {"properties": fields}}})
    assert again.times <= MOST_FIELDS + MOST_FIELDS**2


def test_the_shape_of_a_result_is_bounded() -> None:
    wide = {"type": "object", "properties": {f"field number {at}": {"type": "string"} for at in range(900)}}

    assert len(result_shape(wide)) < 500
    assert result_shape(None) == ""
