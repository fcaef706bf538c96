"""Answers with calls of `call_tool` become answers with native calls, streamed in pieces cut anywhere or not."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mock_providers.scripted import SCRIPTED, SIGNS, STREAMS, Calls, Says
from mock_providers.wire import event_bytes
from model_bodies import CALL_TOOL, TOOL_SEARCH, asking
from odd_values import spoilt, spoilt_events
from one_tool_models import OWN, by
from pegboard.catalog import BpeCounter
from pegboard.gateways.event_stream import EventLines
from pegboard.gateways.llm.call_tool.exchange import CallToolGate, CallToolSearchCodec
from pegboard.gateways.llm.formats.edits import written
from pegboard.gateways.llm.formats.streams import named_event
from pegboard.gateways.llm.formats.tool_search import Document, FunctionCall, SearchExchange
from pegboard.gateways.llm.tool_results.result_reads import ResultReads
from pegboard.results.shape import ShapePolicy
from pegboard.testing import fake_tool

formats = pytest.mark.parametrize("name", CALL_TOOL)

ALPHA = Calls(tool="alpha", arguments={"what": 'Zoë "1"', "big": 12345678901234567890123})
BETA = Calls(tool="beta", arguments={})
NOBODY = Calls(tool="nobody", arguments={"x": 1.5})
NAMELESS = Calls(tool=OWN, arguments={"x": 1})


def format_of(name: str) -> CallToolSearchCodec:
    tools = {tool: [fake_tool(tool)] for tool in ("alpha", "beta")}
    gate = CallToolGate(own=OWN, callable=tools, shown={"alpha"})
    offered = json.dumps(asking(name)["tools"]).encode()
    return CallToolSearchCodec(TOOL_SEARCH[name], CALL_TOOL[name], gate, offered=offered)


def wrapped(says: Says) -> Says:
    calls = [call if call.tool == OWN else by(OWN, call) for call in says.calls]
    return Says(text=says.text, thought=says.thought, calls=calls)


def said(name: str, says: Says, *, streams: bool, id_: str = "answer_0", signs: bool = False) -> Any:
    more = {
        STREAMS: streams,
        SIGNS: signs,
        "stream": streams,
        "stream_options": {"include_usage": True},
        "store": False,
    }
    return SCRIPTED[name](lambda _: says, asking(name, **more), id_)


def streamed(name: str, says: Says) -> list[bytes]:
    """The events of an answer."""
    return [event_bytes(*event) for event in said(name, says, streams=True).events or ()]


def joined(name: str, pieces: Sequence[bytes]) -> bytes:
    format_ = format_of(name)
    joiner = format_.joiner()
    joiner.begin(format_.is_ours)
    out = b"".join(map(joiner.feed, pieces))
    joiner.close()
    return out + joiner.finish(format_.is_ours)


def whole(name: str, stream: bytes) -> Document:
    """What the events of a stream amount to."""
    joiner = TOOL_SEARCH[name].joiner()
    joiner.begin(lambda _: False)
    joiner.feed(stream)
    document = joiner.close()
    assert document is not None
    return document


def cut_up(text: bytes, places: Sequence[int]) -> list[bytes]:
    edges = [0, *sorted(min(place, len(text)) for place in places), len(text)]
    return [text[start:end] for start, end in pairwise(edges)]


ANSWERS = [
    Says(text="Hello, Zoë."),
    Says(calls=[ALPHA]),
    Says(text="So:", calls=[ALPHA, BETA, ALPHA]),
    Says(text="Hm.", thought="I wonder.", calls=[BETA]),
    Says(calls=[NOBODY, ALPHA]),
]


@formats
@pytest.mark.parametrize("says", ANSWERS)
def test_a_stream_amounts_to_what_it_would_with_native_calls(name: str, says: Says) -> None:
    events = streamed(name, wrapped(says))

    out = joined(name, events)

    found, expected = whole(name, out), whole(name, b"".join(streamed(name, says)))
    assert sorted_calls(name, found) == sorted_calls(name, expected)
    assert OWN.encode() not in out


@formats
@pytest.mark.parametrize("says", ANSWERS)
def test_so_does_a_whole_answer(name: str, says: Says) -> None:
    document = said(name, wrapped(says), streams=False).document

    assert format_of(name).merged([document], lambda _: False) == said(name, says, streams=False).document


@pytest.mark.requirement("P27")
@formats
def test_an_answer_without_calls_of_ours_is_the_bytes_that_came(name: str) -> None:
    events = streamed(name, Says(text="Hello, Zoë.", calls=[Calls(tool="hosted")]))

    out = joined(name, events)

    if name == "openai_responses":  # it repeats the tools
        assert whole(name, out) == whole(name, b"".join(events))
    else:
        assert out == b"".join(events)


@formats
def test_whatever_pieces_it_comes_in_the_client_gets_the_same(name: str) -> None:
    text = b"".join(streamed(name, wrapped(Says(text="So, Zoë:", calls=[ALPHA, NOBODY, BETA]))))
    expected = joined(name, [text])

    @given(places=st.lists(st.integers(0, len(text)), max_size=40))
    def holds(places: list[int]) -> None:
        assert joined(name, cut_up(text, places)) == expected

    holds()


@pytest.mark.requirement("P27")
@formats
def test_text_and_calls_that_are_whole_pass_before_the_answer_has_ended(name: str) -> None:
    events = streamed(name, wrapped(Says(text="Let me look.", calls=[ALPHA, BETA])))
    format_ = format_of(name)
    joiner = format_.joiner()
    joiner.begin(format_.is_ours)
    of_the_end = {"openai_chat": 3, "anthropic": 2}.get(name, 1)

    passed = b"".join(map(joiner.feed, events[:-of_the_end]))

    assert b"Let m" in passed
    assert b'"alpha"' in passed


@formats
def test_nothing_is_made_of_a_call_without_a_name_and_the_answer_ends_without_calls(name: str) -> None:
    events = streamed(name, Says(text="Hm.", calls=[NAMELESS, NAMELESS]))
    document = said(name, Says(text="Hm.", calls=[NAMELESS]), streams=False).document

    for found in (whole(name, joined(name, events)), format_of(name).merged([document], lambda _: True)):
        assert TOOL_SEARCH[name].calls(found) == []
        assert "Hm." in json.dumps(found)
        assert not {"tool_calls", "tool_use"} & set(json.dumps(found).split('"'))


@pytest.mark.parametrize("name", ["gemini", "openai_chat"])
@pytest.mark.parametrize("calls", [[NAMELESS, ALPHA, BETA], [ALPHA, NAMELESS]])
def test_the_first_call_that_is_shown_of_those_that_gemini_signed_is_signed(name: str, calls: list[Calls]) -> None:
    says = wrapped(Says(calls=calls))
    events = [event_bytes(*event) for event in said(name, says, streams=True, signs=True).events]
    document = said(name, says, streams=False, signs=True).document
    native = [(call.tool, call.arguments) for call in calls if call is not NAMELESS]

    for found in (whole(name, joined(name, events)), format_of(name).merged([document], lambda _: False)):
        assert [(call.name, json.loads(call.arguments)) for call in TOOL_SEARCH[name].calls(found)] == native
        if name == "gemini":
            made = [part for part in found["candidates"][0]["content"]["parts"] if "functionCall" in part]
            signed = [part.get("thoughtSignature") for part in made]
        else:
            made = found["choices"][0]["message"]["tool_calls"]
            signed = [call.get("extra_content", {}).get("google", {}).get("thought_signature") for call in made]
        assert (signed[0] == "skip_thought_signature_validator") == (calls[0] is NAMELESS)
        assert (bool(signed[0]), signed[1:]) == (True, [None] * (len(native) - 1))


@formats
def test_a_read_beside_a_call_that_fits_does_not_reach_the_client(name: str) -> None:
    says = wrapped(Says(text="So:", calls=[ALPHA, Calls(tool="read_result", arguments={"handle": "r1"})]))
    format_ = format_of(name)
    format_.reads = ResultReads(kept={}, definition=b"{}", policy=ShapePolicy(), counter=BpeCounter())
    joiner = format_.joiner()
    joiner.begin(format_.is_ours)
    out = joiner.feed(b"".join(streamed(name, says)))
    joiner.close()

    found = whole(name, out + joiner.finish(format_.is_ours))
    merged = format_.merged([said(name, says, streams=False).document], format_.is_ours)

    for each in (found, merged):
        assert [call.name for call in TOOL_SEARCH[name].calls(each)] == ["alpha"]


@pytest.mark.parametrize("name", ["openai_chat", "openai_responses"])
def test_numbers_that_are_none_of_json_reach_the_client_as_the_model_wrote_them(name: str) -> None:
    says = Says(calls=[Calls(tool=OWN, arguments={"name": "alpha", "arguments": {"x": float("nan")}})])

    out = joined(name, streamed(name, says))

    for found in (
        whole(name, out),
        format_of(name).merged([said(name, says, streams=False).document], lambda _: False),
    ):
        assert [(call.name, call.arguments) for call in TOOL_SEARCH[name].calls(found)] == [("alpha", '{"x": NaN}')]


no_json = pytest.mark.parametrize("number", ["NaN", "-Infinity", "1e999"])


@no_json
@pytest.mark.parametrize("name", ["anthropic", "gemini"])
def test_no_object_is_made_of_numbers_that_are_none_of_json(name: str, number: str) -> None:
    says = Says(calls=[Calls(tool=OWN, arguments={"name": "alpha", "arguments": f'{{"x": {number}}}'})])
    document, format_ = said(name, says, streams=False).document, format_of(name)

    [(_, meant)] = format_.waiting(document)
    merged = format_.merged([document], lambda _: False)

    assert meant is not None
    assert "arguments: not a JSON object" in asyncio.run(format_.answer(FunctionCall(name=OWN), meant))
    text = f'{{"x": {number}}}'
    expected = json.dumps({"INVALID_JSON": text}) if name == "gemini" else text
    assert [call.arguments for call in TOOL_SEARCH[name].calls(merged)] == [expected]
    assert json.dumps(merged, allow_nan=False)


@no_json
def test_nor_is_one_for_a_further_request(number: str) -> None:
    says = Says(calls=[Calls(tool="search", arguments={"x": float(number)})])

    document = whole("anthropic", b"".join(streamed("anthropic", says)))

    assert document["content"][-1]["input"] == {"INVALID_JSON": json.dumps({"x": float(number)})}


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ('{"name": "beta", "arguments": {"what": "a "quote" in it"}}', "arguments: not a JSON object"),
        ('{"name": "beta" "arguments": {}}', "no valid JSON object"),
        ("[1]", "no valid JSON object"),
    ],
)
def test_the_model_is_told_that_what_it_streamed_is_no_json(text: str, told: str) -> None:
    events = streamed("anthropic", Says(calls=[NAMELESS]))
    delta = {"type": "input_json_delta", "partial_json": text}
    first = next(place for place, event in enumerate(events) if b"partial_json" in event)
    events[first] = named_event({"type": "content_block_delta", "index": 0, "delta": delta})
    stream = b"".join(event for place, event in enumerate(events) if place <= first or b"partial_json" not in event)
    format_ = format_of("anthropic")

    document = whole("anthropic", stream)
    [(call, meant)] = format_.waiting(document)
    answer = asyncio.run(format_.answer(call, meant))
    exchange = SearchExchange(answer=document, results=[(call, answer)])
    body = json.loads(format_.continued(b'{"messages":[]}', [exchange]))

    assert told in answer
    assert body["messages"][0]["content"][-1]["input"] == {"INVALID_JSON": text}


@pytest.mark.parametrize("name", ["anthropic", "gemini"])
def test_a_number_that_python_cannot_hold_is_one_of_json_in_what_is_written_again(name: str) -> None:
    calls = [Calls(tool="search", arguments={"x": [float("inf"), -float("inf")], "Infinity": 'an "Infinity"'})]
    document = said(name, Says(calls=calls), streams=False).document
    exchange = SearchExchange(answer=document, results=[(FunctionCall(name="search", id="c"), "nothing")])

    body = TOOL_SEARCH[name].continued(b'{"messages":[],"contents":[]}', [exchange])
    merged = TOOL_SEARCH[name].merged([document, document], lambda _: False)

    for sent in (body, written(merged)):
        assert b'{"x":[1e999,-1e999],"Infinity":"an \\"Infinity\\""}' in sent
        json.loads(sent, parse_constant=pytest.fail)


@no_json
def test_a_result_with_numbers_that_are_none_of_json_is_a_text_to_gemini(number: str) -> None:
    text = f'{{"x": {number}}}'
    exchange = SearchExchange(answer={}, results=[(FunctionCall(name="search"), text)])

    body = json.loads(TOOL_SEARCH["gemini"].continued(b'{"contents":[]}', [exchange]))

    assert body["contents"][-1]["parts"][0]["functionResponse"]["response"] == {"result": text}


@pytest.mark.parametrize("name", ["openai_chat", "anthropic"])
def test_a_call_that_was_cut_off_is_the_beginning_of_a_native_one(name: str) -> None:
    events = streamed(name, wrapped(Says(calls=[ALPHA])))
    last = max(place for place, event in enumerate(events) if b"partial_json" in event or b'"arguments"' in event)
    stream = b"".join(events[:last] + events[last + 1 :])
    stream = stream.replace(b'"tool_calls"}', b'"length"}').replace(b'"tool_use", "stop', b'"max_tokens", "stop')

    out = joined(name, [stream])

    assert b'"alpha"' in out
    assert b"Zo" in out
    assert b"67890123" not in out
    assert OWN.encode() not in out


def test_a_chunk_may_have_whole_calls_beside_the_reason_of_the_end() -> None:
    calls = [
        {"index": place, "id": f"c{place}", "type": "function", "function": {"name": OWN, "arguments": arguments}}
        for place, arguments in enumerate(['{"name": "alpha", "arguments": {"a": 1.0}}', '{"name": "beta"}'])
    ]
    delta = {"role": "assistant", "content": "So:", "tool_calls": calls}
    chunk = {"id": "a", "choices": [{"index": 0, "delta": delta, "finish_reason": "tool_calls"}], "usage": {"n": 1}}

    out = joined("openai_chat", [b": ping\n\n", event_bytes("", chunk), event_bytes("", "[DONE]")])

    assert out.startswith(b": ping\n\n")
    message = whole("openai_chat", out)["choices"][0]["message"]
    assert message["content"] == "So:"
    assert [(call["id"], call["function"]) for call in message["tool_calls"]] == [
        ("c0", {"name": "alpha", "arguments": '{"a": 1.0}'}),
        ("c1", {"name": "beta", "arguments": "{}"}),
    ]
    assert out.count(b'"usage"') == 1


def test_calls_that_a_server_numbers_alike_are_as_many_calls_as_they_have_ids() -> None:
    def chunk(*calls: Document, finish: str | None = None) -> bytes:
        choice = {"index": 0, "delta": {"tool_calls": calls} if calls else {}, "finish_reason": finish}
        return event_bytes("", {"id": "a", "choices": [choice]})

    def call(id_: str, name: str, arguments: str) -> Document:
        return {"index": 0, "id": id_, "type": "function", "function": {"name": name, "arguments": arguments}}

    more = {"index": 0, "function": {"arguments": '"x": 1}}'}}
    first = [call("c0", "hosted", "{}"), call("c1", OWN, '{"name": "alpha", "arguments": {')]
    chunks = [chunk(*first), chunk(more, call("c2", OWN, '{"name": "beta"}')), chunk(finish="tool_calls")]

    out = joined("openai_chat", chunks)

    calls = TOOL_SEARCH["openai_chat"].calls(whole("openai_chat", out))
    assert [(each.id, each.name, json.loads(each.arguments)) for each in calls] == [
        ("c0", "hosted", {}),
        ("c1", "alpha", {"x": 1}),
        ("c2", "beta", {}),
    ]


def test_a_word_that_the_provider_is_there_does_not_end_a_call() -> None:
    events = streamed("openai_chat", wrapped(Says(calls=[ALPHA])))
    with_pings = [each for event in events for each in (b": ping\n\n", event)]

    out = joined("openai_chat", with_pings)

    assert whole("openai_chat", out) == whole("openai_chat", b"".join(streamed("openai_chat", Says(calls=[ALPHA]))))


def test_the_blocks_of_a_message_keep_their_places_and_the_items_of_a_response_theirs() -> None:
    for name, places in (("anthropic", "index"), ("openai_responses", "output_index")):
        out = joined(name, streamed(name, wrapped(Says(text="So:", calls=[ALPHA, BETA]))))
        events = [json.loads(data) for data in EventLines().feed(out)]

        begun = [event[places] for event in events if event["type"] in ("content_block_start", ADDED)]
        assert begun == [0, 1, 2]
        if name == "openai_responses":
            assert [event["sequence_number"] for event in events] == list(range(len(events)))
            repeated = [tool["name"] for tool in events[-1]["response"]["tools"]]
            assert repeated == [tool["name"] for tool in asking(name)["tools"]]


@formats
def test_calls_that_are_left_out_leave_no_gap_in_the_numbers_of_the_others(name: str) -> None:
    says = Says(text="So:", calls=[ALPHA, NOBODY, NAMELESS, BETA, NAMELESS, NOBODY])

    out = joined(name, streamed(name, wrapped(says)))

    places = numbers(name, out)
    assert places == sorted(places)
    assert set(places) == set(range(len(set(places))))
    called = [call.name for call in TOOL_SEARCH[name].calls(whole(name, out))]
    assert called == ["alpha", "beta", "nobody", "nobody"]


def numbers(name: str, stream: bytes) -> list[int]:
    """The indexes of the blocks, items or calls of a stream, in its order; Gemini has none."""
    events = [json.loads(data) for data in EventLines().feed(stream) if data != b"[DONE]"]
    if name == "openai_chat":
        deltas = [choice["delta"] for event in events for choice in event["choices"]]
        return [call["index"] for delta in deltas for call in delta.get("tool_calls", ())]
    if name == "openai_responses":
        assert [event["sequence_number"] for event in events] == list(range(len(events)))
    key = {"openai_responses": "output_index"}.get(name, "index")
    return [event[key] for event in events if key in event]


def test_a_response_that_repeats_ours_repeats_the_tools_of_the_client() -> None:
    offered = [{"type": "function", "name": OWN}]
    document = said("openai_responses", Says(text="Hm."), streams=False).document | {"tools": offered}

    found = format_of("openai_responses").merged([document], lambda _: False)

    assert found["tools"] == asking("openai_responses")["tools"]


ADDED = "response.output_item.added"


def sorted_calls(name: str, document: Document) -> Any:
    """The calls without their order, and all else: one that does not fit is sent last."""
    calls = TOOL_SEARCH[name].calls(document)
    read = [(call.name, json.loads(call.arguments or "{}"), call.id) for call in calls]
    return sorted(read, key=str), TOOL_SEARCH[name].waits(document)


@formats
def test_no_value_that_a_provider_gets_wrong_ends_the_answer(name: str) -> None:
    says = wrapped(Says(text="Hm.", thought="I wonder.", calls=[ALPHA, NOBODY]))

    for events in spoilt_events(said(name, says, streams=True).events):
        assert b"Hm" in joined(name, [event_bytes("", {"x": "Hm"}), *(event_bytes(*event) for event in events)])
    for answer in spoilt(said(name, says, streams=False).document):
        assert format_of(name).merged([answer], lambda _: False).keys() >= answer.keys()
