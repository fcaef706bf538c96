"""What can be checked at once is certain to be quick."""

from __future__ import annotations

from itertools import islice
from typing import Any

import jsonschema
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from referencing.jsonschema import EMPTY_REGISTRY

from pegboard.routing.light_schemas import STEPS, is_light

NESTED: dict[str, Any] = {"type": "integer"}
for _ in range(15):
    NESTED = {"oneOf": [NESTED, {"type": "null"}]}
TREE = {"properties": {"of": {"items": {"$ref": "#"}}, "name": {"type": "string"}}}


@pytest.mark.requirement("D3")
@pytest.mark.parametrize(
    ("schema", "value"),
    [
        ({"$ref": "#"}, {}),
        ({"$dynamicRef": "#"}, {}),
        ({"$ref": "https://example.org/x"}, {}),
        ({"$id": "https://example.org/x"}, {}),
        ({"properties": []}, [[[]]] * 30_000),
        (NESTED, 1),
        ({"pattern": "^(a+)+$"}, "a"),
        ({"pattern": "a*a*b"}, "a"),
        ({"pattern": "(a|a)*b"}, "a"),
        ({"pattern": "^[a-z]+$"}, "a" * 100_000),
        ({"patternProperties": {"^(a+)+$": {}}}, {"a": 1}),
        ({"uniqueItems": True}, [{}] * 1_000),
        ({"unevaluatedProperties": False}, {"a": 1}),
        ({"enum": [{"a": [1]}]}, {"a": [1]}),
        ({"anyOf": [{"type": "integer"}] * 200}, "x" * 100_000),
        ({"items": {"type": "string"}}, ["x"] * 5_000),
    ],
    ids=lambda each: str(each)[:40],
)
def test_what_may_take_long_is_not_light(schema: dict[str, Any], value: Any) -> None:
    assert not is_light(schema, value)


@pytest.mark.parametrize(
    ("schema", "value"),
    [
        ({}, {"a": [1]}),
        ({"type": "object", "properties": {"text": {"type": "string"}}}, {"text": "x" * 100_000}),
        ({"properties": {"day": {"pattern": r"^\d{4}-\d{2}-\d{2}$"}}}, {"day": "2026-07-01"}),
        ({"properties": {"channel": {"pattern": "^[CDG][A-Z0-9]{8,}$"}}}, {"channel": "C012345678"}),
        ({"$defs": {"P": {"type": "number"}}, "additionalProperties": {"$ref": "#/$defs/P"}}, {"x": 1, "y": 2}),
        (TREE, {"name": "a", "of": [{"name": "b", "of": []}, {"name": "c"}]}),
        ({"items": {"properties": {"id": {"type": "integer"}}}}, [{"id": number} for number in range(100)]),
        ({"anyOf": [{"type": "string"}, {"type": "null"}]}, None),
        ({"enum": ["a", "b"], "uniqueItems": True}, ["a"]),
        ({"properties": 5, "required": "a"}, {}),
    ],
    ids=lambda each: str(each)[:40],
)
def test_what_tools_have_is_light(schema: dict[str, Any], value: Any) -> None:
    assert is_light(schema, value)


PARTS = st.recursive(
    st.booleans() | st.sampled_from([{"type": "string"}, {"$ref": "#/$defs/a"}, {"$ref": "#"}, {"enum": [1, "x"]}]),
    lambda inner: st.fixed_dictionaries(
        {},
        optional={
            "properties": st.dictionaries(st.sampled_from("ab"), inner, max_size=2),
            "additionalProperties": inner,
            "items": inner,
            "oneOf": st.lists(inner, min_size=1, max_size=3),
            "allOf": st.lists(inner, min_size=1, max_size=3),
            "if": inner,
            "then": inner,
            "not": inner,
            "contains": inner,
            "propertyNames": inner,
            "$defs": st.fixed_dictionaries({"a": inner}),
        },
    ),
    max_leaves=12,
)
VALUES = st.recursive(
    st.sampled_from([1, "x", None]),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.sampled_from("abc"), inner, max_size=3),
    max_leaves=20,
)


@given(schema=PARTS, value=VALUES)
def test_the_library_does_no_more_for_it_than_was_counted(schema: Any, value: Any) -> None:
    """Each keyword that jsonschema applies to a part is counted, by the validators themselves."""
    assume(isinstance(schema, dict) and is_light(schema, value))
    counted = 0

    def counting(keyword: Any) -> Any:
        def counted_keyword(*arguments: Any) -> Any:
            nonlocal counted
            counted += 1
            return keyword(*arguments)

        return counted_keyword

    original = jsonschema.Draft202012Validator
    keywords = {name: counting(keyword) for name, keyword in original.VALIDATORS.items()}
    dialect = jsonschema.validators.extend(original, keywords)
    list(islice(dialect(schema, registry=EMPTY_REGISTRY).iter_errors(value), 1_000))

    assert counted <= 12 * STEPS, "a part has a dozen keywords at most"
