"""Results of functions: whatever they return, they have run."""

from __future__ import annotations

from typing import Any

import pytest

from pegboard.library.execution import result_of_value
from pegboard.model import ToolId

TOOL = ToolId("local", "picture")
ROUND: list[Any] = []
ROUND.append(ROUND)


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
    ],
)
def test_a_value_of_any_kind_is_a_result(value: object, text: str) -> None:
    result = result_of_value(TOOL, value)

    assert (result.text, result.is_error) == (text, False)
