"""The way back and `call_tool` in Converse and Cohere Chat, streamed and not, before strict upstreams."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import httpx2
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mock_providers.wire import event_bytes
from model_doors import model_door
from model_upstream import model_upstream
from more_provider_bodies import (
    CODECS,
    CONVERSE,
    NAMES,
    POINT,
    USED,
    Call,
    answer_of_cohere,
    answer_of_converse,
    chat,
    converse,
    frame,
)
from odd_values import Event, spoilt, spoilt_events
from pegboard.events import ModelRequestServed
from pegboard.gateways.event_stream import EventLines
from pegboard.gateways.llm.call_tool.exchange import CallToolGate, CallToolSearchCodec
from pegboard.gateways.llm.formats.bedrock.event_frames import EventFrames, event_frame, exception_frame
from pegboard.gateways.llm.formats.bedrock.tool_search import call_frames
from pegboard.gateways.llm.formats.call_tool import CallTool, CallToolCodec
from pegboard.gateways.llm.formats.registry import call_tool_of, tool_search_of
from pegboard.gateways.llm.formats.streams import named_event
from pegboard.gateways.llm.formats.tool_search import Document, SearchExchange, SearchTool, ToolSearchCodec
from pegboard.stores import MemoryEmbeddings
from pegboard.testing import FakeEncoder, fake_tool
from processes import until
from strict_upstreams import PROBLEMS
from strict_upstreams.conversations import CONVERSATIONS

EVENTS = "application/vnd.amazon.eventstream"
PATHS = {"bedrock": (CONVERSE, f"{CONVERSE}-stream"), "cohere": ("/v2/chat", "/v2/chat")}
KINDS = {"bedrock": EVENTS, "cohere": "text/event-stream"}
SEARCH = ("search_tools", {"query": "book flight"})
FLY = ("book_flight", {"what": "Zoë \u2028 1"})
LOAN = ("renew_loan", {"what": "the book"})

providers = pytest.mark.parametrize("name", ["bedrock", "cohere"])
both = pytest.mark.parametrize("streams", [False, True])


def wrapped(call: Call) -> Call:
    return "call_tool", {"name": call[0], "arguments": dict(call[1])}


def says(name: str, *calls: Call, text: str = "", streams: bool = False, number: int = 0) -> bytes:
    """An answer with this text and these calls."""
    if name == "bedrock":
        return _frames(calls, text, number) if streams else json.dumps(answer_of_converse(calls, text, number)).encode()
    return _events(calls, text, number) if streams else json.dumps(answer_of_cohere(calls, text, number)).encode()


def _frames(calls: Sequence[Call], text: str, number: int) -> bytes:
    document = answer_of_converse(calls, text, number)
    out = frame("messageStart", {"role": "assistant"})
    for place, block in enumerate(document["output"]["message"]["content"]):
        at = {"contentBlockIndex": place}
        if "text" in block:
            pieces = [{"text": block["text"][:3]}, {"text": block["text"][3:]}]
        else:
            given_ = json.dumps(block["toolUse"]["input"])
            pieces = [{"toolUse": {"input": each}} for each in (given_[:4], given_[4:])]
            start = {key: value for key, value in block["toolUse"].items() if key != "input"}
            out += frame("contentBlockStart", {"start": {"toolUse": start}, **at})
        out += b"".join(frame("contentBlockDelta", {"delta": each, **at}) for each in pieces)
        out += frame("contentBlockStop", at)
    out += frame("messageStop", {"stopReason": document["stopReason"]})
    return out + frame("metadata", {"usage": document["usage"], "metrics": document["metrics"]})


def _events(calls: Sequence[Call], text: str, number: int) -> bytes:
    whole = answer_of_cohere(calls, text, number)

    def event(kind: str, message: Document | None = None, **more: Any) -> bytes:
        said = {"type": kind, **more} | ({} if message is None else {"delta": {"message": message}})
        return f"event: {kind}\ndata: {json.dumps(said)}\n\n".encode()

    out = event("message-start", {"role": "assistant", "content": [], "tool_calls": []}, id=whole["id"])
    if calls and text:
        out += event("tool-plan-delta", {"tool_plan": text[:3]}) + event("tool-plan-delta", {"tool_plan": text[3:]})
    elif text:
        out += event("content-start", {"content": {"type": "text", "text": ""}}, index=0)
        out += event("content-delta", {"content": {"text": text[:3]}}, index=0)
        out += event("content-delta", {"content": {"text": text[3:]}}, index=0)
        out += event("content-end", index=0)
    for place, call in enumerate(whole["message"].get("tool_calls", ())):
        arguments = call["function"]["arguments"]
        start = call | {"function": call["function"] | {"arguments": ""}}
        out += event("tool-call-start", {"tool_calls": start}, index=place)
        for piece in (arguments[:4], arguments[4:]):
            out += event("tool-call-delta", {"tool_calls": {"function": {"arguments": piece}}}, index=place)
        out += event("tool-call-end", index=place)
    delta = {"finish_reason": whole["finish_reason"], "usage": whole["usage"]}
    return out + event("message-end", id=whole["id"], delta=delta) + b"data: [DONE]\n\n"


def search_codec(name: str) -> ToolSearchCodec:
    found = tool_search_of(CODECS[name][0])
    assert found is not None
    return found


def call_codec(name: str) -> CallToolCodec:
    found = call_tool_of(CODECS[name][0])
    assert found is not None
    return found


def read(name: str, data: bytes, *, streams: bool) -> tuple[str, list[Call], str, int]:
    """What a client gets: the text, the calls, the reason of the end, and the tokens of the prompts."""
    return _read_converse(data, streams) if name == "bedrock" else _read_cohere(data, streams)


def _read_converse(data: bytes, streams: bool) -> tuple[str, list[Call], str, int]:
    if not streams:
        whole = json.loads(data)
        blocks = whole["output"]["message"]["content"]
        calls = [(block["toolUse"]["name"], block["toolUse"]["input"]) for block in blocks if "toolUse" in block]
        text = "|".join(block["text"] for block in blocks if "text" in block)
        return text, calls, whole["stopReason"], whole["usage"]["inputTokens"]
    frames = EventFrames()
    events = [(each.event, each.document or {}) for each in frames.whole(data)]
    assert frames.left() == b""
    texts: dict[int, str] = {}
    names: dict[int, str] = {}
    inputs: dict[int, str] = {}
    for _, said in events:
        at = said.get("contentBlockIndex")
        if "start" in said:
            names[at] = said["start"]["toolUse"]["name"]
        delta = said.get("delta", {})
        if "text" in delta:
            texts[at] = texts.get(at, "") + delta["text"]
        elif "toolUse" in delta:
            inputs[at] = inputs.get(at, "") + delta["toolUse"]["input"]
    assert not texts.keys() & names.keys()
    assert sorted({*texts, *names}) == list(range(len(texts) + len(names)))
    assert [kind for kind, _ in events].count("messageStart") == 1
    assert [kind for kind, _ in events][-2:] == ["messageStop", "metadata"]
    calls = [(names[at], json.loads(inputs[at])) for at in sorted(names)]
    return (
        "|".join(texts[at] for at in sorted(texts)),
        calls,
        events[-2][1]["stopReason"],
        events[-1][1]["usage"]["inputTokens"],
    )


def _read_cohere(data: bytes, streams: bool) -> tuple[str, list[Call], str, int]:
    if not streams:
        whole = json.loads(data)
        message = whole["message"]
        made = message.get("tool_calls", [])
        calls = [(each["function"]["name"], json.loads(each["function"]["arguments"])) for each in made]
        texts = [message.get("tool_plan", ""), *(block["text"] for block in message.get("content") or ())]
        tokens = whole["usage"]["tokens"]["input_tokens"]
        return "|".join(filter(None, texts)), calls, whole["finish_reason"], tokens
    events = [json.loads(line[6:]) for line in data.decode().split("\n") if line.startswith("data: {")]
    plan, text = "", ""
    names: dict[int, str] = {}
    inputs: dict[int, str] = {}
    for event in events:
        message = event.get("delta", {}).get("message", {})
        match event["type"]:
            case "tool-plan-delta":
                plan += message["tool_plan"]
            case "content-delta":
                text += message["content"]["text"]
            case "tool-call-start":
                names[event["index"]] = message["tool_calls"]["function"]["name"]
                inputs[event["index"]] = message["tool_calls"]["function"]["arguments"]
            case "tool-call-delta":
                inputs[event["index"]] += message["tool_calls"]["function"]["arguments"]
    assert [event["type"] for event in events].count("message-start") == 1
    assert events[-1]["type"] == "message-end"
    assert data.endswith(b"data: [DONE]\n\n")
    assert events[-1]["id"] == events[0]["id"]
    assert sorted(names) == list(range(len(names)))
    calls = [(names[at], json.loads(inputs[at])) for at in sorted(names)]
    delta = events[-1]["delta"]
    return "|".join(filter(None, [plan, text])), calls, delta["finish_reason"], delta["usage"]["tokens"]["input_tokens"]


def asked(name: str, *, streams: bool, **more: Any) -> tuple[str, Document]:
    body = converse(**more) if name == "bedrock" else chat(**more, **({"stream": True} if streams else {}))
    return PATHS[name][streams], body


def tools_of(name: str, body: Document) -> list[str]:
    return [tool.name for tool in CODECS[name][0].parse(json.dumps(body).encode(), PATHS[name][0]).tools]


async def exchanged(
    name: str, requests: Sequence[Document], answers: Sequence[bytes], *, streams: bool, **policy: Any
) -> tuple[list[bytes], list[Document], list[ModelRequestServed]]:
    """What the client gets for these requests, what was sent for them, which the provider takes, and the events."""
    parts: dict[str, Any] = {"encoder": FakeEncoder(), "embeddings": MemoryEmbeddings()}
    terms = {"profile": "semantic", "k": 1} | policy
    async with model_upstream() as upstream:
        upstream.bodies = list(answers)
        upstream.kind = KINDS[name] if streams else "application/json"
        async with (
            model_door({name: {"url": upstream.url, "format": name}}, parts=parts, policy=terms) as (
                address,
                _,
                events,
            ),
            httpx2.AsyncClient(base_url=f"http://{address}/{name}", trust_env=False, timeout=60) as http,
        ):
            got = [await http.post(PATHS[name][streams], json=body) for body in requests]
            await until(lambda: len(events.of(ModelRequestServed)) == len(requests))
    assert [each.status_code for each in got] == [200] * len(requests), got[-1].text
    sent = [json.loads(each.body) for each in upstream.sent]
    assert [problem for body in sent for problem in PROBLEMS[name](body) + CONVERSATIONS[name](body)] == []
    served = [each for each in events.of(ModelRequestServed) if isinstance(each, ModelRequestServed)]
    return [each.content for each in got], sent, served


@pytest.mark.requirement("providers.converse-and-cohere")
@providers
@both
async def test_a_tool_that_was_left_out_is_found_and_the_client_sees_its_call(name: str, *, streams: bool) -> None:
    answers = [
        says(name, SEARCH, text="Let me look.", streams=streams),
        says(name, FLY, LOAN, streams=streams, number=1),
    ]
    _, body = asked(name, streams=streams)

    [got], sent, [served] = await exchanged(name, [body], answers, streams=streams, way_back=True)

    reason = "tool_use" if name == "bedrock" else "TOOL_CALL"
    assert read(name, got, streams=streams) == ("Let me look.", [FLY, LOAN], reason, 2 * USED[0])
    assert b"search_tools" not in got
    assert tools_of(name, sent[0]) == ["renew_loan", "search_tools"]
    assert {"book_flight", "renew_loan"} <= {*tools_of(name, sent[1])}
    assert served.called == ("book_flight", "renew_loan")


def test_what_the_gateway_offers_in_converse_has_a_schema_that_amazon_nova_takes() -> None:
    search = search_codec("bedrock").offer(b"{}", SearchTool(name="search_tools", description="-", kinds=("tool",)))
    offered = [*json.loads(search)["toolConfig"]["tools"]]
    offered.append(json.loads(call_codec("bedrock").offer(CallTool(name="call_tool", description="-"))))

    keys = [{*tool["toolSpec"]["inputSchema"]["json"]} for tool in offered]
    assert keys == [{"type", "properties", "required"}] * 2


@providers
@both
async def test_an_answer_without_calls_of_ours_is_the_bytes_that_came(name: str, *, streams: bool) -> None:
    answer = says(name, LOAN, text="So:", streams=streams)
    _, body = asked(name, streams=streams)

    [got], sent, _ = await exchanged(name, [body], [answer], streams=streams, way_back=True)

    assert got == answer
    assert len(sent) == 1


@providers
@both
async def test_a_search_after_which_the_model_only_talks_ends_without_calls(name: str, *, streams: bool) -> None:
    answers = [says(name, SEARCH, streams=streams), says(name, text="No flight.", streams=streams, number=1)]
    _, body = asked(name, streams=streams)

    [got], _, _ = await exchanged(name, [body], answers, streams=streams, way_back=True)

    reason = "end_turn" if name == "bedrock" else "COMPLETE"
    assert read(name, got, streams=streams) == ("No flight.", [], reason, 2 * USED[0])


@pytest.mark.parametrize(
    ("name", "after"),
    [
        ("bedrock", frame("messageStop", {"stopReason": None})),
        ("cohere", b'event: message-end\ndata: {"type":"message-end","delta":{"finish_reason":null}}\n\n'),
    ],
)
def test_an_event_after_the_finish_leaves_it_what_it_was(name: str, after: bytes) -> None:
    joiner = search_codec(name).joiner()
    joiner.begin(lambda tool: tool == "search_tools")
    joiner.feed(says(name, SEARCH, streams=True) + after)
    answer = joiner.close()

    assert answer is not None
    assert search_codec(name).waits(answer)
    assert [call.name for call in search_codec(name).calls(answer)] == ["search_tools"]


@pytest.mark.parametrize(
    ("name", "error"),
    [
        ("bedrock", exception_frame("throttlingException", "overloaded")),
        (
            "cohere",
            named_event({"type": "message-end", "delta": {"finish_reason": "ERROR", "error": "overloaded"}}),
        ),
    ],
)
def test_an_error_within_a_further_answer_reaches_the_client(name: str, error: bytes) -> None:
    joiner, held = search_codec(name).joiner(), (lambda tool: tool == "search_tools")
    joiner.begin(held)
    joiner.feed(says(name, SEARCH, streams=True))
    joiner.close()
    joiner.begin(held)

    out = joiner.feed(error)
    joiner.close()

    assert b"overloaded" in out + joiner.finish(held)


@pytest.mark.requirement("providers.converse-and-cohere")
@providers
@both
async def test_tools_are_called_through_one_and_the_client_sees_native_calls(name: str, *, streams: bool) -> None:
    """Also in the history that it sends back, which is the model's own again at the provider."""
    answers = [
        says(name, ("call_tool", {"nothing": 1}), streams=streams),
        says(name, wrapped(FLY), wrapped(LOAN), text="So:", streams=streams, number=1),
        says(name, text="Done.", streams=streams, number=2),
    ]
    _, body = asked(name, streams=streams)
    then = body | {"messages": body["messages"] + _answered(name)}

    (first, second), sent, served = await exchanged(
        name, [body, then], answers, streams=streams, ways=["call_tool"], way_back=True
    )

    reason = "tool_use" if name == "bedrock" else "TOOL_CALL"
    assert read(name, first, streams=streams) == ("So:", [FLY, LOAN], reason, 2 * USED[0])
    assert read(name, second, streams=streams)[:2] == ("Done.", [])
    assert [tools_of(name, each) for each in sent] == [["call_tool"]] * 3
    assert [each.called for each in served] == [("book_flight", "renew_loan"), ()]
    assert sent[2]["messages"][0] == sent[0]["messages"][0]
    said = json.dumps(sent[2]["messages"], ensure_ascii=False)
    assert "Extend" not in said
    assert said.count('"name": "call_tool"') == 2
    codec, path = CODECS[name]
    assert codec.parse(json.dumps(sent[2]).encode(), path).called == {"call_tool"}


def _answered(name: str) -> list[Document]:
    """The client's history: the calls it made, and their results."""
    if name == "bedrock":
        message = answer_of_converse([FLY, LOAN], "So:", 1)["output"]["message"]
        ids = [block["toolUse"]["toolUseId"] for block in message["content"] if "toolUse" in block]
        results = [{"toolResult": {"toolUseId": each, "content": [{"text": "done"}]}} for each in ids]
        return [message, {"role": "user", "content": results}]
    message = answer_of_cohere([FLY, LOAN], "So:", 1)["message"]
    results = [{"role": "tool", "tool_call_id": call["id"], "content": "done"} for call in message["tool_calls"]]
    return [message, *results]


def test_what_each_row_of_converse_cannot_do_is_said() -> None:
    codec, path = CODECS["bedrock"]
    prefilled = converse()
    prefilled["messages"].append({"role": "assistant", "content": [{"text": "{"}]})
    strict = converse()
    strict["toolConfig"]["tools"][0]["toolSpec"]["strict"] = True

    def parsed(body: Document) -> Any:
        return codec.parse(json.dumps(body).encode(), path)

    assert "continues" in search_codec("bedrock").closed(parsed(prefilled), "")
    assert "strict" in call_codec("bedrock").closed(parsed(strict))
    assert call_codec("bedrock").closed(parsed(converse())) == ""


def test_cohere_tools_that_are_strict_are_not_called_through_another() -> None:
    codec, path = CODECS["cohere"]

    assert "strict" in call_codec("cohere").closed(codec.parse(json.dumps(chat(strict_tools=True)).encode(), path))


def test_one_cache_point_stands_behind_call_tool() -> None:
    tools = [*converse()["toolConfig"]["tools"]]
    tools = [tools[0], POINT, *tools[1:], POINT, {"systemTool": {"name": "nova_grounding"}}]
    codec, path = CODECS["bedrock"]
    request = codec.parse(json.dumps(converse(tools=tools)).encode(), path)
    [edit] = call_codec("bedrock").tools(request, b'{"toolSpec":{"name":"call_tool"}}')

    assert json.loads(edit.text) == [tools[-1], {"toolSpec": {"name": "call_tool"}}, POINT]


def cut_up(data: bytes, places: Sequence[int]) -> list[bytes]:
    edges = [0, *sorted(min(place, len(data)) for place in places), len(data)]
    return [data[start:end] for start, end in pairwise(edges)]


def joined(name: str, format_: ToolSearchCodec, ours: Any, *answers: Sequence[bytes]) -> bytes:
    joiner, out = format_.joiner(), b""
    for pieces in answers:
        joiner.begin(ours)
        out += b"".join(map(joiner.feed, pieces))
        joiner.close()
    return out + joiner.finish(ours)


@pytest.mark.requirement("P27")
@providers
def test_whatever_pieces_a_stream_comes_in_the_client_gets_the_same(name: str) -> None:
    answers = [
        says(name, SEARCH, text="Let me look.", streams=True),
        says(name, SEARCH, text="Once more.", streams=True, number=1),
        says(name, LOAN, SEARCH, FLY, streams=True, number=2),
    ]
    ours = lambda tool: tool == "search_tools"  # noqa: E731
    whole = joined(name, search_codec(name), ours, *([each] for each in answers))
    assert read(name, whole, streams=True)[1] == [LOAN, FLY]
    assert b"search_tools" not in whole

    @given(places=st.lists(st.integers(0, 1500), max_size=30))
    def holds(places: list[int]) -> None:
        assert joined(name, search_codec(name), ours, *(cut_up(each, places) for each in answers)) == whole

    holds()


@pytest.mark.requirement("P27")
@providers
def test_so_it_does_where_calls_are_translated(name: str) -> None:
    tools = {tool: [fake_tool(tool)] for tool in NAMES}
    gate = CallToolGate(own="call_tool", callable=tools, shown=set(NAMES))
    format_ = CallToolSearchCodec(search_codec(name), call_codec(name), gate, offered=b"[]")
    answer = says(name, wrapped(LOAN), ("call_tool", {"x": 1}), wrapped(FLY), text="So:", streams=True)
    whole = joined(name, format_, format_.is_ours, [answer])
    text, calls, *_ = read(name, whole, streams=True)
    assert (text, calls) == ("So:", [LOAN, FLY])
    document = json.loads(says(name, wrapped(LOAN), ("call_tool", {"x": 1}), wrapped(FLY), text="So:"))
    merged = json.dumps(format_.merged([document], lambda _: False)).encode()
    assert read(name, merged, streams=False)[:2] == ("So:", [LOAN, FLY])

    @given(places=st.lists(st.integers(0, 1500), max_size=30))
    def holds(places: list[int]) -> None:
        assert joined(name, format_, format_.is_ours, cut_up(answer, places)) == whole

    holds()


@providers
def test_calls_that_are_left_out_leave_no_gap_in_the_numbers_of_the_others(name: str) -> None:
    gate = CallToolGate(own="call_tool", callable={LOAN[0]: [fake_tool(LOAN[0])]}, shown={LOAN[0]})
    format_ = CallToolSearchCodec(search_codec(name), call_codec(name), gate, offered=b"[]")
    nameless = ("call_tool", {"x": 1})
    answer = says(name, wrapped(LOAN), wrapped(FLY), nameless, nameless, wrapped(FLY), text="So:", streams=True)

    out = joined(name, format_, format_.is_ours, [answer])

    assert read(name, out, streams=True)[1] == [LOAN, FLY, FLY]
    if name == "bedrock":
        found = [said.get("contentBlockIndex") for each in EventFrames().whole(out) if (said := each.document)]
    else:
        events = [json.loads(data) for data in EventLines().feed(out) if data != b"[DONE]"]
        found = [event["index"] for event in events if event["type"].startswith("tool-call")]
    assert list(dict.fromkeys(place for place in found if place is not None)) == list(range(4 - (name == "cohere")))


@pytest.mark.parametrize("number", ["NaN", "-Infinity", "1e999"])
def test_no_object_of_converse_is_made_of_numbers_that_are_none_of_json(number: str) -> None:
    gate = CallToolGate(own="call_tool", callable={LOAN[0]: [fake_tool(LOAN[0])]}, shown={LOAN[0]})
    format_ = CallToolSearchCodec(search_codec("bedrock"), call_codec("bedrock"), gate, offered=b"[]")
    call = ("call_tool", {"name": LOAN[0], "arguments": f'{{"x": {number}}}'})
    joiner = search_codec("bedrock").joiner()
    joiner.begin(lambda _: True)

    merged = format_.merged([json.loads(says("bedrock", call))], lambda _: False)
    joiner.feed(says("bedrock", ("search", {"x": float(number)}), streams=True))
    again = search_codec("bedrock").continued(
        b'{"messages":[]}', [SearchExchange(answer=joiner.close() or {}, results=[])]
    )

    [block] = merged["output"]["message"]["content"]
    assert block["toolUse"]["input"] == {"INVALID_JSON": f'{{"x": {number}}}'}
    sent = json.loads(again)["messages"][0]["content"][0]["toolUse"]["input"]
    assert sent == {"INVALID_JSON": json.dumps({"x": float(number)})}


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ('{"name": "renew_loan", "arguments": {"what": "a "quote" in it"}}', "arguments: not a JSON object"),
        ('{"name": "renew_loan" "arguments": {}}', "no valid JSON object"),
    ],
)
def test_the_model_is_told_that_what_it_streamed_by_converse_is_no_json(text: str, told: str) -> None:
    gate = CallToolGate(own="call_tool", callable={LOAN[0]: [fake_tool(LOAN[0])]}, shown={LOAN[0]})
    format_ = CallToolSearchCodec(search_codec("bedrock"), call_codec("bedrock"), gate, offered=b"[]")
    joiner = search_codec("bedrock").joiner()
    joiner.begin(lambda _: True)
    use = {"toolUseId": "t1", "name": "call_tool"}
    joiner.feed(b"".join(call_frames(0, use, text)) + frame("messageStop", {"stopReason": "tool_use"}))
    answer = joiner.close()
    assert answer is not None

    [(call, meant)] = format_.waiting(answer)
    result = asyncio.run(format_.answer(call, meant))
    again = json.loads(format_.continued(b'{"messages":[]}', [SearchExchange(answer=answer, results=[(call, result)])]))

    assert told in result
    assert again["messages"][0]["content"][0]["toolUse"]["input"] == {"INVALID_JSON": text}


@providers
def test_an_answer_that_breaks_off_is_none_to_go_on_from(name: str) -> None:
    joiner = search_codec(name).joiner()
    joiner.begin(lambda tool: tool == "search_tools")
    joiner.feed(says(name, SEARCH, streams=True)[:-400])

    assert joiner.close() is None


@providers
def test_an_error_of_a_further_answer_ends_the_stream_with_its_words(name: str) -> None:
    joiner = search_codec(name).joiner()
    joiner.begin(lambda tool: tool == "search_tools")
    joiner.feed(says(name, SEARCH, streams=True))
    joiner.close()

    assert b"too many requests" in joiner.failed(json.dumps({"message": "too many requests"}).encode())
    assert b"no JSON" in joiner.failed(b"no JSON")


def test_signed_reasoning_goes_back_as_it_came() -> None:
    reasons = [{"reasoningContent": {"text": "I "}}, {"reasoningContent": {"text": "look."}}]
    reasons.append({"reasoningContent": {"signature": "c2ln"}})
    at = {"contentBlockIndex": 0}
    stream = frame("messageStart", {"role": "assistant"})
    stream += b"".join(frame("contentBlockDelta", {"delta": each, **at}) for each in reasons)
    stream += frame("contentBlockStop", at) + frame("messageStop", {"stopReason": "end_turn"})
    joiner = search_codec("bedrock").joiner()
    joiner.begin(lambda _: False)

    joiner.feed(stream)

    document = joiner.close()
    assert document is not None
    text = {"reasoningText": {"text": "I look.", "signature": "c2ln"}}
    assert document["output"]["message"]["content"] == [{"reasoningContent": text}]


def test_frames_are_written_as_bedrock_writes_them() -> None:
    assert event_frame("messageStop", {}) == frame("messageStop", {})
    [read_] = EventFrames().whole(event_frame("metadata", {"usage": {}}))
    assert (read_.event, read_.document) == ("metadata", {"usage": {}})


@given(data=st.binary(max_size=200))
def test_a_stream_that_is_none_passes_as_it_came(data: bytes) -> None:
    whole = b"\xff" * 12 + data
    joiner = search_codec("bedrock").joiner()
    joiner.begin(lambda _: False)

    out = joiner.feed(whole)

    assert joiner.close() is None
    assert out + joiner.finish(lambda _: False) == whole


def events_in(name: str, data: bytes) -> list[Event]:
    if name == "bedrock":
        return [(each.event, each.document) for each in EventFrames().whole(data)]
    told = [json.loads(each) for each in EventLines().feed(data) if each != b"[DONE]"]
    return [(event["type"], event) for event in told]


def sent(name: str, events: Sequence[Event]) -> bytes:
    return b"".join(frame(*event) if name == "bedrock" else event_bytes(*event) for event in events)


@providers
def test_no_value_that_a_provider_gets_wrong_keeps_what_follows_from_the_client(name: str) -> None:
    def joined(*answers: bytes) -> bytes:
        joiner, out = search_codec(name).joiner(), b""
        for answer in answers:
            joiner.begin(lambda tool: tool == SEARCH[0])
            out += joiner.feed(answer)
            joiner.close()
        return out + joiner.finish(lambda tool: tool == SEARCH[0])

    first = says(name, SEARCH, FLY, text="Hm, well", streams=True)
    then = says(name, FLY, text="So that", streams=True, number=1)
    for events in spoilt_events(events_in(name, first)):
        assert b"So " in joined(sent(name, events), then), events
    for events in spoilt_events(events_in(name, then)):
        assert joined(first, sent(name, events))


@providers
def test_nor_does_one_of_calls_of_call_tool(name: str) -> None:
    tools = {tool: [fake_tool(tool)] for tool in ("book_flight", "renew_loan")}
    gate = CallToolGate(own="call_tool", callable=tools, shown={"book_flight"})
    codec = CallToolSearchCodec(search_codec(name), call_codec(name), gate, offered=b"[]")
    calls = [wrapped(FLY), wrapped(("nobody", {})), wrapped(LOAN)]

    for events in spoilt_events(events_in(name, says(name, *calls, text="Hm, well", streams=True))):
        joiner = codec.joiner()
        joiner.begin(codec.is_ours)
        assert isinstance(joiner.feed(sent(name, events)), bytes)
        joiner.close()
        assert isinstance(joiner.finish(codec.is_ours), bytes)
    for answer in spoilt(json.loads(says(name, *calls, text="Hm, well"))):
        assert codec.merged([answer], lambda _: False).keys() >= answer.keys()
