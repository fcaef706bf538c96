"""Results of functions: whatever they return, they have run."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from pegboard.library.execution import result_of_value
from pegboard.model import ToolId

TOOL = ToolId("local", "picture")
ROUND: list[Any] = []
ROUND.append(ROUND)
DEEP: list[Any] = []
for _ in range(3_000):
    DEEP = [DEEP]


class Unspeakable:
    def __str__(self) -> str:
        raise RuntimeError("no text")

    __repr__ = __str__


def lines() -> Iterator[object]:
    yield from ("first", b"\xff", "last")


def breaks() -> Iterator[str]:
    yield "first"
    raise ValueError("the database went away")


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("16:20", "16:20"),
        (b"16:20", "16:20"),
        (b"\xff!", "\N{REPLACEMENT CHARACTER}!"),
        ({"a": b"text"}, '{"a": "text"}'),
        ({"a": b"\xff", "b": [b"text"]}, '{"a": "_w==", "b": ["dGV4dA=="]}'),
        ({b"\xff": 1}, '{"_w==": 1}'),
        (ROUND, "[[...]]"),
        (lines(), '["first", "_w==", "last"]'),
        ({"lines": lines()}, '{"lines": ["first", "_w==", "last"]}'),
    ],
)
def test_a_value_of_any_kind_is_a_result(value: object, text: str) -> None:
    result = result_of_value(TOOL, value)

    assert (result.text, result.is_error) == (text, False)


@pytest.mark.parametrize("value", [DEEP, [Unspeakable()]], ids=["deep", "unspeakable"])
def test_what_cannot_be_shown_is_named(value: object) -> None:
    result = result_of_value(TOOL, value)

    assert " object at 0x" in result.text
    assert not result.is_error


@pytest.mark.parametrize("value", [breaks(), {"rows": breaks()}])
def test_a_generator_that_fails_is_a_function_that_fails(value: object) -> None:
    with pytest.raises(ValueError, match="the database went away"):
        result_of_value(TOOL, value)
