"""Of any valid request: what comes out is valid, and nothing in it changed but what had to."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from model_bodies import CODECS, PATH
from model_requests import BODIES, written_requests
from pegboard.errors import RequestNotUnderstood
from pegboard.gateways.llm.formats.json_spans import members
from pegboard.gateways.llm.formats.protocol import Codec, LlmRequest, OfferedTool
from pegboard.gateways.llm.formats.tool_choice import apply_tool_choice, left_alone, moved_breakpoints, must_stay
from strict_upstreams import PROBLEMS

MENDED = {"tools", "functions", "tool_choice", "function_call", "parallel_tool_calls", "toolConfig", "tool_config"}
"""The fields that may change with the tools."""

formats = pytest.mark.parametrize("name", CODECS)
picks = st.sets(st.integers(0, 12))
when_none = st.sampled_from(["all", "none"])


def _has_bytes_of_its_own(name: str, tool: OfferedTool) -> bool:
    """A group of Gemini's may lose its declarations, and keep what is hosted in it."""
    return not (name == "gemini" and tool.hosted)


def rewritten(codec: Codec, body: bytes, wanted: set[int], rule: Any) -> tuple[LlmRequest, tuple[int, ...], bytes]:
    request = codec.parse(body, PATH)
    assume(not left_alone(request))
    kept = apply_tool_choice(request, dict.fromkeys(wanted, "relevant"), when_none=rule).places
    return request, kept, codec.rewrite(request, kept)


@pytest.mark.requirement("openai.tool-choice")
@pytest.mark.requirement("P9", "P10", "P12", "P14", "P20", "P21", "P26")
@formats
@given(data=st.data(), wanted=picks, rule=when_none)
def test_what_is_valid_going_in_is_valid_coming_out(
    name: str, data: st.DataObject, wanted: set[int], rule: str
) -> None:
    body = data.draw(written_requests(BODIES[name]))
    assert PROBLEMS[name](json.loads(body)) == []

    _, _, out = rewritten(CODECS[name], body, wanted, rule)

    assert PROBLEMS[name](json.loads(out)) == []


@pytest.mark.requirement("P23")
@formats
@given(data=st.data())
def test_with_every_tool_kept_the_body_is_the_same_byte_for_byte(name: str, data: st.DataObject) -> None:
    body = data.draw(written_requests(BODIES[name]))
    request = CODECS[name].parse(body, PATH)

    assert CODECS[name].rewrite(request, range(len(request.tools))) == body


@pytest.mark.requirement("P18", "P22", "P23")
@formats
@given(data=st.data(), wanted=picks, rule=when_none)
def test_kept_tools_are_the_same_byte_for_byte_and_in_their_order(
    name: str, data: st.DataObject, wanted: set[int], rule: str
) -> None:
    body = data.draw(written_requests(BODIES[name]))

    request, kept, out = rewritten(CODECS[name], body, wanted, rule)

    moved = moved_breakpoints(request, kept)
    before = {place: request.tools[place] for place in kept if _has_bytes_of_its_own(name, request.tools[place])}
    after = [tool for tool in CODECS[name].parse(out, PATH).tools if _has_bytes_of_its_own(name, tool)]
    for (place, old), new in zip(before.items(), after, strict=True):
        if place in moved:
            marked = json.loads(old.definition) | {"cache_control": json.loads(moved[place])}
            assert json.loads(new.definition) == marked
        else:
            assert new.definition == old.definition


@pytest.mark.requirement("P23")
@formats
@given(data=st.data(), wanted=picks, rule=when_none)
def test_every_other_field_is_the_same_byte_for_byte_and_in_its_order(
    name: str, data: st.DataObject, wanted: set[int], rule: str
) -> None:
    body = data.draw(written_requests(BODIES[name]))

    _, _, out = rewritten(CODECS[name], body, wanted, rule)

    def others(text: bytes) -> list[tuple[str, bytes]]:
        return [(key, text[each.start : each.end]) for key, each in members(text).items() if key not in MENDED]

    assert others(out) == others(body)


@formats
@given(data=st.data(), wanted=picks, rule=when_none)
def test_what_the_rules_keep_is_kept_and_nothing_else_that_nobody_wanted(
    name: str, data: st.DataObject, wanted: set[int], rule: str
) -> None:
    body = data.draw(written_requests(BODIES[name]))

    request, kept, _ = rewritten(CODECS[name], body, wanted, rule)

    assert set(must_stay(request)) <= set(kept)
    if wanted & (set(range(len(request.tools))) - set(must_stay(request))) and request.choice.names is None:
        assert set(kept) == set(must_stay(request)) | (wanted & set(range(len(request.tools))))


@pytest.mark.requirement("P23")
@formats
@given(data=st.data(), junk=st.binary(max_size=3), at=st.floats(0, 1))
def test_a_broken_body_is_not_understood_or_passes_and_never_breaks_the_codec(
    name: str, data: st.DataObject, junk: bytes, at: float
) -> None:
    body = data.draw(written_requests(BODIES[name]))
    place = int(at * len(body))
    broken = body[:place] + junk + body[place + data.draw(st.integers(0, 5)) :]

    try:
        request = CODECS[name].parse(broken, PATH)
    except RequestNotUnderstood:
        return
    assert CODECS[name].rewrite(request, range(len(request.tools))) == broken
    CODECS[name].rewrite(request, apply_tool_choice(request, {}, when_none="none").places)
