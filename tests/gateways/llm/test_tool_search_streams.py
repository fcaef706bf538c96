"""Several streams as one, in pieces cut anywhere: what passes, when it passes, and what never does."""

from __future__ import annotations

import json
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mock_providers.scripted import SCRIPTED, STREAMS, Calls, Says
from mock_providers.wire import event_bytes
from model_bodies import TOOL_SEARCH, asking
from odd_values import Event, spoilt, spoilt_events
from pegboard.gateways.event_stream import EventLines
from pegboard.gateways.llm.formats.tool_search import Joiner

SEARCH = Calls(tool="search_tools", arguments={"query": "fly"})
HIDDEN = Calls(tool="beta", arguments={"what": "Zoë"})
REAL = Calls(tool="alpha", arguments={"what": "a \u2028 b"})
USAGES = ("usage", "usageMetadata")

formats = pytest.mark.parametrize("name", TOOL_SEARCH)


def ours(tool: str) -> bool:
    return tool in ("search_tools", "beta")


def events_of(name: str, says: Says, id_: str = "answer_0") -> list[Event]:
    more = {STREAMS: True, "stream": True, "stream_options": {"include_usage": True}, "store": False}
    reply = SCRIPTED[name](lambda _: says, asking(name, tools=["alpha"], **more), id_)
    return list(reply.events or ())


def streamed(name: str, says: Says, id_: str = "answer_0") -> list[bytes]:
    """The events of an answer."""
    return [event_bytes(*event) for event in events_of(name, says, id_)]


def joined(name: str, *answers: Sequence[bytes], hides: Any = ours) -> bytes:
    joiner, out = TOOL_SEARCH[name].joiner(), b""
    for pieces in answers:
        joiner.begin(ours)
        out += b"".join(map(joiner.feed, pieces))
        joiner.close()
    return out + joiner.finish(hides)


def data_of(stream: bytes) -> list[Any]:
    """What the events hold, but for the usage; those that only say that the provider is there are left out."""
    found = [json.loads(data) for data in EventLines().feed(stream) if data != b"[DONE]"]
    return [_without_usage(event) for event in found if event.get("type") != "ping"]


def _without_usage(value: Any) -> Any:
    if isinstance(value, list):
        return [_without_usage(each) for each in value]
    if isinstance(value, dict):
        return {name: _without_usage(each) for name, each in value.items() if name not in USAGES}
    return value


def cut_up(events: Sequence[bytes], places: Sequence[int]) -> list[bytes]:
    text = b"".join(events)
    edges = [0, *sorted(min(place, len(text)) for place in places), len(text)]
    return [text[start:end] for start, end in pairwise(edges)]


@pytest.mark.requirement("P27")
@formats
@pytest.mark.parametrize("says", [Says(text="Hello, Zoë."), Says(text="So:", calls=[REAL, REAL])])
def test_an_answer_without_calls_of_ours_is_the_bytes_that_came(name: str, says: Says) -> None:
    events = streamed(name, says)

    assert joined(name, events) == b"".join(events)


@formats
@pytest.mark.parametrize("after", [Says(text="Done, Zoë."), Says(calls=[REAL]), Says(text="So:", calls=[REAL, REAL])])
def test_a_search_and_what_follows_are_the_events_of_what_follows_alone(name: str, after: Says) -> None:
    search, rest = streamed(name, Says(calls=[SEARCH])), streamed(name, after, "answer_1")

    out = joined(name, search, rest).replace(b"answer_1", b"answer_0")

    expected = data_of(b"".join(streamed(name, after)))
    if name == "openai_chat":  # whether there will be a text is said before it is known
        expected[0]["choices"][0]["delta"]["content"] = None
    assert data_of(out) == expected


@formats
def test_whatever_pieces_they_come_in_the_client_gets_the_same(name: str) -> None:
    answers = [
        streamed(name, Says(text="Let me look.", calls=[SEARCH, HIDDEN])),
        streamed(name, Says(text="Once more.", calls=[SEARCH]), "answer_1"),
        streamed(name, Says(text="So:", calls=[REAL, HIDDEN, REAL]), "answer_2"),
    ]
    whole = joined(name, *answers)

    @given(places=st.lists(st.integers(0, 4000), max_size=40))
    def holds(places: list[int]) -> None:
        assert joined(name, *(cut_up(events, places) for events in answers)) == whole

    holds()


def test_a_last_word_that_comes_with_the_reason_of_the_end_passes_at_once() -> None:
    def chunk(delta: dict[str, Any], finish: str | None) -> bytes:
        choice = {"index": 0, "delta": delta, "finish_reason": finish}
        return event_bytes("", {"id": "a", "choices": [choice]})

    call = {"index": 0, "id": "c", "function": {"name": "search_tools", "arguments": "{}"}}
    searches = [chunk({"tool_calls": [call]}, None), chunk({"content": "Hm."}, "tool_calls")]
    ends = [chunk({"role": "assistant", "content": "So."}, "stop"), event_bytes("", "[DONE]")]

    assert joined("openai_chat", ends) == b"".join(ends)
    words = [event["choices"][0] for event in data_of(joined("openai_chat", searches, ends))]
    assert [(word["delta"].get("content"), word["finish_reason"]) for word in words] == [
        ("Hm.", None),
        ("\n\nSo.", "stop"),
    ]


@pytest.mark.requirement("P27")
@formats
def test_text_passes_before_its_answer_has_ended(name: str) -> None:
    joiner: Joiner = TOOL_SEARCH[name].joiner()
    joiner.begin(ours)
    passed = b""
    for event in streamed(name, Says(text="Let me look.", calls=[SEARCH])):
        passed += joiner.feed(event)
        if b"search_tools" in event and b"arguments" in event:
            break

    assert b"Let m" in passed
    assert b"k." in passed


@formats
def test_nothing_of_ours_passes_in_any_round(name: str) -> None:
    rounds = [streamed(name, Says(text="Hm.", calls=[SEARCH, HIDDEN]), f"answer_{number}") for number in range(4)]

    out = joined(name, *rounds)

    assert b"search_tools" not in out
    assert b"fly" not in out


@formats
def test_a_hidden_call_that_is_not_asked_again_passes_whole_behind_the_others(name: str) -> None:
    first = streamed(name, Says(calls=[SEARCH]))
    last = streamed(name, Says(calls=[HIDDEN, SEARCH, REAL]), "answer_1")

    out = json.dumps(data_of(joined(name, first, last, hides=lambda tool: tool == "search_tools")))

    assert out.index('"alpha"') < out.index('"beta"')
    assert "search_tools" not in out
    assert "Zo" in out


@formats
def test_usage_is_that_of_all_answers(name: str) -> None:
    rounds = [streamed(name, Says(calls=[SEARCH]), f"answer_{number}") for number in range(3)]

    out = joined(name, *rounds).decode()

    assert '_tokens":300' in out or '"promptTokenCount":300' in out
    assert '_tokens":60' in out or '"candidatesTokenCount":60' in out


@formats
def test_an_answer_that_breaks_off_is_none_to_go_on_from(name: str) -> None:
    events = streamed(name, Says(calls=[SEARCH]))
    ends = {"openai_chat": 3, "openai_responses": 1, "anthropic": 2, "gemini": 1}
    joiner = TOOL_SEARCH[name].joiner()
    joiner.begin(ours)

    for event in events[: -ends[name]]:
        joiner.feed(event)

    assert joiner.close() is None


OBJECT = {"provider_specific_fields": {"thinking_blocks": []}, "extra_content": {"google": {"thought": True}}}


def test_a_search_beside_fields_of_the_server_is_one_to_go_on_from() -> None:
    call = {"index": 0, "id": "c", "function": {"name": "search_tools", "arguments": "{}"}}
    later = {"provider_specific_fields": {"signature": "s"}, "tool_calls": [call]}
    joiner = TOOL_SEARCH["openai_chat"].joiner()
    joiner.begin(ours)

    for delta, finish in (({"content": "Hm."} | OBJECT, None), (later, None), ({}, "tool_calls")):
        choice = {"index": 0, "delta": delta, "finish_reason": finish}
        joiner.feed(event_bytes("", {"id": "a", "choices": [choice]}))
    answer = joiner.close()

    assert answer is not None
    assert [found.name for found in TOOL_SEARCH["openai_chat"].calls(answer)] == ["search_tools"]
    message = answer["choices"][0]["message"]
    assert message["provider_specific_fields"] == {"thinking_blocks": [], "signature": "s"}
    assert message["extra_content"] == OBJECT["extra_content"]


def chat_chunk(*calls: dict[str, Any], finish: str | None = None) -> bytes:
    choice = {"index": 0, "delta": {"tool_calls": calls} if calls else {}, "finish_reason": finish}
    return event_bytes("", {"id": "a", "choices": [choice]})


def all_numbered_0(id_: str, name: str, arguments: str = "{}") -> dict[str, Any]:
    return {"index": 0, "id": id_, "type": "function", "function": {"name": name, "arguments": arguments}}


def test_calls_that_a_server_numbers_alike_are_as_many_calls_as_they_have_ids() -> None:
    pieces = [
        all_numbered_0("c1", "search_tools", '{"query": "mail"}'),
        all_numbered_0("c2", "search_tools", '{"query": '),
        {"index": 0, "id": "", "function": {"name": "", "arguments": '"weather"}'}},
    ]
    joiner = TOOL_SEARCH["openai_chat"].joiner()
    joiner.begin(ours)

    joiner.feed(b"".join([*(chat_chunk(piece) for piece in pieces), chat_chunk(finish="tool_calls")]))
    answer = joiner.close()

    assert answer is not None
    calls = TOOL_SEARCH["openai_chat"].calls(answer)
    assert [(call.id, json.loads(call.arguments)) for call in calls] == [
        ("c1", {"query": "mail"}),
        ("c2", {"query": "weather"}),
    ]


def test_of_calls_that_a_server_numbers_alike_the_client_gets_its_own() -> None:
    calls = [all_numbered_0("c1", "alpha"), all_numbered_0("c2", "search_tools"), all_numbered_0("c3", "gamma")]

    out = joined("openai_chat", [chat_chunk(*calls), chat_chunk(finish="tool_calls")])

    shown = [call for event in data_of(out) for call in event["choices"][0]["delta"].get("tool_calls", ())]
    assert [(call["index"], call["id"], call["function"]["name"]) for call in shown] == [
        (0, "c1", "alpha"),
        (1, "c3", "gamma"),
    ]


def test_a_call_whose_pieces_each_have_an_id_of_their_own_is_one_call() -> None:
    more = {"index": 0, "id": "x2", "function": {"arguments": '"mail"}'}}
    joiner = TOOL_SEARCH["openai_chat"].joiner()
    joiner.begin(ours)

    joiner.feed(chat_chunk(all_numbered_0("x1", "search_tools", '{"query": ')) + chat_chunk(more, finish="tool_calls"))
    answer = joiner.close()

    assert answer is not None
    assert [call.arguments for call in TOOL_SEARCH["openai_chat"].calls(answer)] == ['{"query": "mail"}']


@pytest.mark.parametrize(
    ("name", "event"),
    [
        ("openai_chat", {"choices": [{"index": 0, "delta": {"audio": {"data": "AAAA"}}}]}),
        ("anthropic", {"type": "content_block_delta", "index": 0, "delta": {"type": "new_delta"}}),
    ],
)
def test_nor_is_one_with_parts_that_cannot_be_put_together_again(name: str, event: dict[str, Any]) -> None:
    events = streamed(name, Says(calls=[SEARCH]))
    joiner = TOOL_SEARCH[name].joiner()
    joiner.begin(ours)

    for each in [*events[:3], event_bytes("", event), *events[3:]]:
        joiner.feed(each)

    assert joiner.close() is None
    assert b"search_tools" not in joiner.finish(ours)


@formats
def test_an_error_of_a_further_answer_ends_the_stream_with_its_words(name: str) -> None:
    joiner = TOOL_SEARCH[name].joiner()
    joiner.begin(ours)
    for event in streamed(name, Says(text="Let me look.", calls=[SEARCH])):
        joiner.feed(event)

    last = joiner.failed(json.dumps({"error": {"message": "overloaded", "type": "overloaded_error"}}).encode())

    assert last.endswith(b"\n\n")
    assert "overloaded" in json.dumps(data_of(last))
    assert "not JSON" in json.dumps(data_of(joiner.failed(b"not JSON")))


ERRORS = {
    "openai_chat": event_bytes("", {"error": {"message": "overloaded", "type": "server_error", "code": 503}}),
    "openai_responses": event_bytes("error", {"type": "error", "code": "server_error", "message": "overloaded"}),
    "anthropic": event_bytes("error", {"type": "error", "error": {"type": "api_error", "message": "overloaded"}}),
    "gemini": event_bytes("", {"error": {"code": 503, "message": "overloaded", "status": "UNAVAILABLE"}}),
}


@formats
def test_an_error_within_a_further_answer_reaches_the_client(name: str) -> None:
    search = streamed(name, Says(calls=[SEARCH]))
    broken = [*streamed(name, Says(text="The answer"), "answer_1")[:3], ERRORS[name]]

    out = joined(name, search, broken)

    assert "overloaded" in json.dumps(data_of(out)[-1])


AFTER = {
    "openai_chat": {"id": "answer_0", "choices": [{"index": 0, "delta": {}, "finish_reason": None}]},
    "gemini": {"responseId": "answer_0", "candidates": [{"index": 0, "finishReason": None}], "usageMetadata": None},
}
"""What servers send after the end of the answer: Azure, for one, what its filter found."""


@pytest.mark.parametrize("name", AFTER)
def test_a_chunk_after_the_finish_leaves_it_what_it_was(name: str) -> None:
    search = [*streamed(name, Says(calls=[SEARCH])), event_bytes("", AFTER[name])]
    joiner = TOOL_SEARCH[name].joiner()
    joiner.begin(ours)
    for event in search:
        joiner.feed(event)
    answer = joiner.close()

    assert answer is not None
    assert [call.name for call in TOOL_SEARCH[name].calls(answer)] == ["search_tools"]
    assert TOOL_SEARCH[name].waits(answer)


def test_a_gemini_event_after_the_finish_does_not_take_it_from_the_client() -> None:
    last = {"responseId": "answer_0", "usageMetadata": {"promptTokenCount": 100}}
    for after in (AFTER["gemini"], last):
        search = [*streamed("gemini", Says(calls=[HIDDEN])), event_bytes("", after)]

        told = data_of(joined("gemini", search, hides=lambda tool: tool == "search_tools"))

        assert told[-1]["candidates"][0]["finishReason"] == "STOP"
        assert "beta" in json.dumps(told)
        assert b'"promptTokenCount":100' in joined("gemini", search, hides=ours)


@formats
def test_no_value_that_a_provider_gets_wrong_keeps_what_follows_from_the_client(name: str) -> None:
    wrong, rest = events_of(name, Says(text="Hm.", calls=[SEARCH, REAL])), streamed(name, Says(text="So:"), "answer_1")

    for events in spoilt_events(wrong):
        assert b"So" in joined(name, [event_bytes(*event) for event in events], rest), events
    for events in spoilt_events(events_of(name, Says(text="So:", calls=[HIDDEN, REAL]), "answer_1")):
        assert joined(name, [event_bytes(*event) for event in wrong], [event_bytes(*event) for event in events])


@formats
def test_nor_does_one_of_a_whole_answer(name: str) -> None:
    answer = SCRIPTED[name](
        lambda _: Says(text="Hm.", calls=[SEARCH, REAL]), asking(name, tools=["alpha"], **{STREAMS: False}), "answer_0"
    )
    codec, right = TOOL_SEARCH[name], answer.document

    for wrong in spoilt(right):
        assert isinstance(codec.waits(wrong), bool)
        assert isinstance(codec.calls(wrong), list)
        for answers in ([wrong], [right, wrong], [wrong, right]):
            assert codec.merged(answers, ours).keys() >= answers[-1].keys()
