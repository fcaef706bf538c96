"""Answers are followed as they pass, whatever pieces they come in."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from decimal import Decimal
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from model_bodies import CODECS
from pegboard.gateways.llm.formats.gemini.request import Gemini
from pegboard.gateways.llm.formats.generic.request import Generic
from pegboard.gateways.llm.formats.openai_chat.request import OpenAIChat
from pegboard.gateways.llm.formats.protocol import AnswerStarted, Codec, Observation, ToolCalled
from pegboard.gateways.llm.formats.streams import MOST_HELD, DocumentObserver, EventLines, Frames
from pegboard.model_prices import ModelPrice
from pegboard.token_usage import TokenUsage

EVENTS = "text/event-stream; charset=utf-8"
RENEWED = "renew_loan"
SEEN: dict[str, list[Observation]] = {
    "openai_chat": [
        AnswerStarted(id="chatcmpl-1"),
        ToolCalled(name=RENEWED, id="call_a"),
        ToolCalled(name=RENEWED, id="call_b"),
        TokenUsage(input=120, output=20, cache_read=100),
    ],
    "openai_responses": [
        AnswerStarted(id="resp_1"),
        ToolCalled(name=RENEWED, id="call_a"),
        TokenUsage(input=120, output=20, cache_read=100),
    ],
    "anthropic": [
        AnswerStarted(id="msg_1"),
        TokenUsage(input=120, output=1, cache_read=100, cache_write=10),
        ToolCalled(name=RENEWED, id="toolu_a"),
        TokenUsage(input=120, output=20, cache_read=100, cache_write=10),
    ],
    "gemini": [
        AnswerStarted(id="r-1"),
        AnswerStarted(id="r-1"),
        ToolCalled(name=RENEWED),
        TokenUsage(input=120, output=20, cache_read=100),
    ],
}
formats = pytest.mark.parametrize("name", CODECS)


def observed(codec: Codec, content_type: str, pieces: Sequence[bytes]) -> list[Observation]:
    observer = codec.observe(content_type)
    return [seen for piece in pieces for seen in observer.feed(piece)] + list(observer.finish())


def cut_up(text: bytes, places: Sequence[int]) -> list[bytes]:
    edges = [0, *sorted(min(place, len(text)) for place in places), len(text)]
    return [text[start:end] for start, end in pairwise(edges)]


@pytest.mark.requirement("P27")
@formats
def test_a_stream_tells_the_calls_and_the_usage(name: str, data: Path) -> None:
    stream = (data / "llm" / f"{name}.sse").read_bytes()

    assert observed(CODECS[name], EVENTS, [stream]) == SEEN[name]


@pytest.mark.requirement("P27")
@formats
@given(places=st.lists(st.integers(0, 2000), max_size=12), ends=st.sampled_from([b"\n", b"\r\n", b"\r"]))
def test_a_stream_cut_anywhere_tells_the_same(name: str, data: Path, places: list[int], ends: bytes) -> None:
    stream = (data / "llm" / f"{name}.sse").read_bytes().replace(b"\n", ends)

    assert observed(CODECS[name], EVENTS, cut_up(stream, places)) == SEEN[name]


@pytest.mark.requirement("P27")
@formats
def test_a_stream_in_single_bytes_tells_the_same(name: str, data: Path) -> None:
    stream = (data / "llm" / f"{name}.sse").read_bytes()

    assert observed(CODECS[name], EVENTS, [stream[at : at + 1] for at in range(len(stream))]) == SEEN[name]


WHOLE: dict[str, tuple[object, list[Observation]]] = {
    "openai_chat": (
        {
            "id": "chatcmpl-1",
            "choices": [{"message": {"tool_calls": [{"id": "call_a", "function": {"name": RENEWED}}]}}],
            "usage": {"prompt_tokens": 9, "completion_tokens": 2},
        },
        [AnswerStarted(id="chatcmpl-1"), ToolCalled(name=RENEWED, id="call_a"), TokenUsage(input=9, output=2)],
    ),
    "openai_responses": (
        {
            "id": "resp_1",
            "output": [{"type": "custom_tool_call", "call_id": "call_a", "name": RENEWED}, {"type": "message"}],
            "usage": {"input_tokens": 9, "output_tokens": 2},
        },
        [AnswerStarted(id="resp_1"), ToolCalled(name=RENEWED, id="call_a"), TokenUsage(input=9, output=2)],
    ),
    "anthropic": (
        {
            "id": "msg_1",
            "content": [{"type": "text", "text": "x"}, {"type": "tool_use", "id": "toolu_a", "name": RENEWED}],
            "usage": {"input_tokens": 9, "output_tokens": 2},
        },
        [AnswerStarted(id="msg_1"), ToolCalled(name=RENEWED, id="toolu_a"), TokenUsage(input=9, output=2)],
    ),
    "gemini": (
        [{"responseId": "r-1"}, {"candidates": [{"content": {"parts": [{"functionCall": {"name": RENEWED}}]}}]}],
        [AnswerStarted(id="r-1"), ToolCalled(name=RENEWED)],
    ),
}


@pytest.mark.requirement("P27")
@formats
def test_a_whole_answer_tells_the_same_as_a_stream_would(name: str) -> None:
    document, seen = WHOLE[name]
    text = json.dumps(document).encode()

    assert observed(CODECS[name], "application/json", [text[:7], text[7:]]) == seen


def test_a_call_of_old_is_a_call() -> None:
    answer = json.dumps({"choices": [{"message": {"function_call": {"name": RENEWED, "arguments": "{}"}}}]}).encode()

    assert observed(OpenAIChat(), "application/json", [answer]) == [ToolCalled(name=RENEWED)]


def test_a_server_that_repeats_the_name_in_every_chunk_has_made_one_call() -> None:
    call = b'{"index":0,"function":{"name":"renew_loan","arguments":"{"}}'
    chunk = b'data: {"choices":[{"delta":{"tool_calls":[' + call + b"]}}]}\n\n"

    assert observed(OpenAIChat(), EVENTS, [chunk] * 3) == [ToolCalled(name=RENEWED)]


@pytest.mark.requirement("P27")
@formats
@given(noise=st.lists(st.binary(max_size=40) | st.sampled_from([b"\n\n", b"data: ", b"data: {}\n\n", b"data: [[["])))
def test_nothing_that_passes_by_breaks_the_observer(name: str, noise: list[bytes]) -> None:
    for content_type in (EVENTS, "application/json", "text/html", ""):
        observed(CODECS[name], content_type, noise)


def test_an_event_that_nothing_ends_is_told_at_the_end(data: Path) -> None:
    stream = (data / "llm" / "gemini.sse").read_bytes().rstrip(b"\n")

    assert observed(Gemini(), EVENTS, [stream]) == SEEN["gemini"]


def test_what_is_too_large_to_hold_passes_unread_and_what_follows_is_read() -> None:
    lines = EventLines(most=100)

    assert list(lines.feed(b"data: " + b"x" * 200)) == []
    assert list(lines.feed(b"x" * 200 + b"\n\ndata: next\n\n")) == [b"next"]


def test_a_document_too_large_to_hold_is_not_held() -> None:
    observer = DocumentObserver(lambda _: [AnswerStarted(id="read")], most=10)

    observer.feed(b"x" * 8)
    observer.feed(b"x" * 8)

    assert list(observer.finish()) == []
    assert MOST_HELD > 1024


def test_of_any_other_format_nothing_is_known() -> None:
    assert observed(Generic(), "application/json", [b'{"tool_calls": []}']) == []


def test_thoughts_that_only_the_total_counts_are_output() -> None:
    usage = {"prompt_tokens": 32, "completion_tokens": 9, "total_tokens": 135}
    answer = json.dumps({"usage": usage | {"completion_tokens_details": {"reasoning_tokens": 94}}}).encode()

    assert observed(OpenAIChat(), "application/json", [answer]) == [TokenUsage(input=32, output=103)]


def test_an_event_with_all_that_an_answer_has_is_read_in_linear_time() -> None:
    """The last event of Responses repeats each image of the answer."""
    event = b"data: " + b"x" * (40 * 1024 * 1024) + b"\n\n"
    frames, size = Frames(), 64 * 1024

    read = [len(raw) for at in range(0, len(event), size) for raw, _ in frames.feed(event[at : at + size])]

    assert read == [len(event)]


def test_what_geminis_own_tools_put_into_the_prompt_is_input() -> None:
    counts = {"promptTokenCount": 20, "toolUsePromptTokenCount": 9000, "candidatesTokenCount": 100}
    answer = json.dumps({"usageMetadata": counts | {"totalTokenCount": 9120}}).encode()

    assert observed(Gemini(), "application/json", [answer]) == [TokenUsage(input=9020, output=100)]


PRICE = ModelPrice(input=Decimal(4), output=Decimal(20))
COMPACTION = {"type": "compaction", "input_tokens": 180_000, "output_tokens": 3_500}
REPLY = {"type": "message", "input_tokens": 23_000, "output_tokens": 1_000}


def test_what_claude_compacted_counts_beside_what_its_answer_says_at_the_top() -> None:
    cached = COMPACTION | {"cache_read_input_tokens": 7, "cache_creation_input_tokens": 5}
    usage = {"input_tokens": 23_000, "output_tokens": 1_000, "iterations": [cached, REPLY]}
    answer = json.dumps({"id": "msg_1", "content": [], "usage": usage}).encode()

    *_, used = observed(CODECS["anthropic"], "application/json", [answer])

    assert used == TokenUsage(input=203_012, output=4_500, cache_read=7, cache_write=5)


def test_what_claude_compacted_has_the_price_of_its_own_length() -> None:
    usage = {"input_tokens": 23_000, "output_tokens": 1_000, "iterations": [COMPACTION, REPLY]}
    answer = json.dumps({"id": "msg_1", "content": [], "usage": usage}).encode()
    *_, used = observed(CODECS["anthropic"], "application/json", [answer])
    price = replace(PRICE, above=200_000, beyond=replace(PRICE, input=Decimal(8), output=Decimal(40)))

    assert isinstance(used, TokenUsage)
    assert price.prompt(used) == 203_000 * PRICE.input * 1_000
    assert price.cost(used) == (203_000 * PRICE.input + 4_500 * PRICE.output) * 1_000
    more = replace(used, output=used.output + 100)
    assert price.cost(more) == (203_000 * PRICE.input + 4_600 * PRICE.output) * 1_000, "output that was not counted yet"
    dear = replace(price, above=100_000)
    assert dear.prompt(used) == (180_000 * 8 + 23_000 * PRICE.input) * 1_000
    twice = used.plus(used)
    assert dear.prompt(twice) == (360_000 * 8 + 46_000 * PRICE.input) * 1_000


def test_in_a_stream_the_last_list_of_what_claude_compacted_counts() -> None:
    begun = {"input_tokens": 23_000, "output_tokens": 1, "iterations": [COMPACTION]}
    ended = {"output_tokens": 1_000, "iterations": [COMPACTION, REPLY]}
    events = [
        {"type": "message_start", "message": {"id": "msg_1", "usage": begun}},
        {"type": "message_delta", "delta": {}, "usage": ended},
        {"type": "message_delta", "delta": {}, "usage": {"output_tokens": 1_001}},
    ]
    stream = b"".join(b"data: %s\n\n" % json.dumps(event).encode() for event in events)

    *_, before, used = observed(CODECS["anthropic"], EVENTS, [stream])

    assert before == TokenUsage(input=203_000, output=4_500)
    assert used == TokenUsage(input=203_000, output=4_501)
