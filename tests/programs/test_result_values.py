from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from pegboard.programs.result_values import LONGEST, CallFailed, value_of
from pegboard.testing import fake_tool

TOOL = fake_tool("find")
TYPED = replace(TOOL, output_schema={"type": "object"})


def texts(*said: str, **more: Any) -> dict[str, Any]:
    return {"content": [{"type": "text", "text": text} for text in said]} | more


@pytest.mark.parametrize(
    ("result", "value"),
    [
        (texts("plain"), "plain"),
        (texts("12"), "12"),
        (texts(' {"a": [1, 12345678901234567890]}'), {"a": [1, 12345678901234567890]}),
        (texts("[not json"), "[not json"),
        (texts("[" * 100_000), "[" * 100_000),
        (texts('{"a": 1}', "two"), [{"a": 1}, "two"]),
        (texts(), None),
        (texts("said", structuredContent={"other": 1}), "said"),
    ],
)
def test_texts_are_parsed_where_they_are_json_and_stay_texts_elsewhere(result: dict[str, Any], value: Any) -> None:
    assert value_of(TOOL, result) == value


def test_a_tool_with_an_output_schema_gives_its_structured_content() -> None:
    assert value_of(TYPED, texts("said", structuredContent={"other": 1})) == {"other": 1}
    assert value_of(TYPED, texts("said")) == "said"


def test_what_is_no_text_says_what_it_is_without_its_bytes() -> None:
    picture = {"type": "image", "mimeType": "image/png", "data": "A" * 9_000}

    assert value_of(TOOL, {"content": [picture]}) == "[image, image/png, 9000 characters of base64]"


@pytest.mark.parametrize(
    ("result", "said"),
    [
        (texts("no such file", isError=True), "no such file"),
        ({"content": [], "isError": True}, "without saying why"),
        ({"resultType": "input_required", "content": []}, "call it by itself"),
        ({"task": {"taskId": "1"}}, "call it by itself"),
        (texts("x" * (LONGEST + 1)), "ask for less"),
    ],
)
def test_what_is_no_result_is_raised_with_a_reason(result: dict[str, Any], said: str) -> None:
    with pytest.raises(CallFailed, match=said):
        value_of(TOOL, result)
