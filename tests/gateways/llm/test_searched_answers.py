"""Answers with parts that providers documented lately, or that only some servers send, around a hidden search."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from pegboard.gateways.llm.formats.anthropic.tool_search import MessagesToolSearch
from pegboard.gateways.llm.formats.bedrock.event_frames import EventFrames, event_frame
from pegboard.gateways.llm.formats.bedrock.tool_search import ConverseToolSearch
from pegboard.gateways.llm.formats.cohere.tool_search import CohereToolSearch
from pegboard.gateways.llm.formats.gemini.request import Gemini
from pegboard.gateways.llm.formats.gemini.tool_search import ContentsToolSearch
from pegboard.gateways.llm.formats.openai_chat.tool_search import ChatToolSearch
from pegboard.gateways.llm.formats.openai_responses.tool_search import ResponsesToolSearch
from pegboard.gateways.llm.formats.tool_search import Document, SearchExchange, ToolSearchCodec

SEARCH, QUERY = "search_tools", '{"query": "x"}'


def ours(name: str) -> bool:
    return name == SEARCH


def stream(*events: Mapping[str, Any] | str) -> bytes:
    written = (each if isinstance(each, str) else json.dumps(each) for each in events)
    return b"".join(b"data: %b\n\n" % each.encode() for each in written)


def events_of(sent: bytes) -> list[Any]:
    found = (line.removeprefix("data: ") for line in sent.decode().splitlines() if line.startswith("data: "))
    return [json.loads(each) for each in found if each != "[DONE]"]


def joined(codec: ToolSearchCodec, *rounds: bytes) -> tuple[bytes, list[Document | None]]:
    """What the client gets of these streams, and each as a whole answer."""
    joiner, sent, answers = codec.joiner(), b"", list[Document | None]()
    for each in rounds:
        joiner.begin(ours)
        sent += joiner.feed(each)
        answers.append(joiner.close())
    return sent + joiner.finish(ours), answers


def thinking(text: str) -> Document:
    return {"type": "thinking", "thinking": [{"type": "text", "text": text}]}


def text(said: str) -> Document:
    return {"type": "text", "text": said}


CHAT_CALL = {"id": "c", "type": "function", "function": {"name": SEARCH, "arguments": QUERY}}


def chat(content: Any, **message: Any) -> Document:
    return {"choices": [{"index": 0, "message": {"content": content, **message}, "finish_reason": "stop"}]}


@pytest.mark.parametrize(
    ("first", "last", "whole"),
    [
        ("Look.", [thinking("hm"), text("4")], [text("Look."), thinking("hm"), text("4")]),
        ([thinking("a"), text("Look.")], "4", [thinking("a"), text("Look."), text("4")]),
        ("Look.", "4", "Look.\n\n4"),
    ],
)
def test_chat_keeps_contents_that_are_lists(first: Any, last: Any, whole: Any) -> None:
    merged = ChatToolSearch().merged([chat(first, tool_calls=[CHAT_CALL]), chat(last)], ours)

    assert merged["choices"][0]["message"]["content"] == whole


def test_chat_streams_contents_that_are_lists_and_replays_them_whole() -> None:
    def chunk(finish: str | None = None, **delta: Any) -> Document:
        return {"choices": [{"index": 0, "delta": delta, "finish_reason": finish}]}

    sent, (first, _) = joined(
        ChatToolSearch(),
        stream(
            chunk(content=[thinking("a")]),
            chunk(content="Look."),
            chunk("tool_calls", tool_calls=[CHAT_CALL]),
            "[DONE]",
        ),
        stream(chunk(content=[thinking("b")]), chunk("stop", content="4"), "[DONE]"),
    )

    contents = [event["choices"][0]["delta"].get("content") for event in events_of(sent)]
    assert [each for each in contents if each] == [[thinking("a")], "Look.", [thinking("b")], "4"]
    assert first is not None
    assert first["choices"][0]["message"]["content"] == [thinking("a"), text("Look.")]


RESPONSES_CALL = {"type": "function_call", "id": "f", "call_id": "c", "name": SEARCH, "arguments": QUERY}


def test_responses_whose_end_leaves_the_items_out_are_searched_for() -> None:
    codec = ResponsesToolSearch()
    _, (answer,) = joined(
        codec,
        stream(
            {"type": "response.created", "response": {"id": "r", "output": []}},
            {"type": "response.output_item.added", "output_index": 0, "item": RESPONSES_CALL | {"arguments": ""}},
            {"type": "response.output_item.done", "output_index": 0, "item": RESPONSES_CALL},
            {"type": "response.completed", "response": {"id": "r", "status": "completed", "output": []}},
        ),
    )

    assert answer is not None
    assert [call.name for call in codec.calls(answer)] == [SEARCH]


def test_responses_calls_that_the_provider_ran_wait_for_nobody() -> None:
    codec = ResponsesToolSearch()
    ran = [
        {"type": "shell_call", "call_id": "k", "action": {"commands": ["ls"]}},
        {"type": "shell_call_output", "call_id": "k", "output": []},
    ]
    first = {"id": "r", "status": "completed", "output": [*ran, RESPONSES_CALL]}
    last = {"id": "s", "status": "completed", "output": [{"type": "message", "content": []}]}

    assert [call.name for call in codec.calls(first)] == [SEARCH]
    assert codec.merged([first, last], ours)["output"] == [*ran, *last["output"]]


@pytest.mark.parametrize("name", ["streamFunctionCallArguments", "stream_function_call_arguments"])
def test_gemini_offers_no_search_where_arguments_come_in_parts(name: str) -> None:
    body = {
        "contents": [{"role": "user", "parts": [{"text": "hi"}]}],
        "tools": [{"functionDeclarations": [{"name": "a"}]}],
        "toolConfig": {"functionCallingConfig": {"mode": "AUTO", name: True}},
    }
    request = Gemini().parse(json.dumps(body).encode(), "/v1/models/gemini-3:streamGenerateContent")

    assert ContentsToolSearch().closed(request, "alt=sse") == "the arguments of its calls are streamed"


def test_what_gemini_cites_is_where_it_was() -> None:
    def answer(parts: Sequence[Document], **more: Any) -> Document:
        return {"candidates": [{"content": {"role": "model", "parts": parts}, "finishReason": "STOP", **more}]}

    call = {"functionCall": {"name": SEARCH, "args": {}}}
    supports = [{"segment": {"partIndex": 0, "startIndex": 0, "endIndex": 5}}, {"segment": {"endIndex": 5}}]
    merged = ContentsToolSearch().merged(
        [
            answer([{"text": "Look."}, call]),
            answer([{"text": "Paris is big"}], groundingMetadata={"groundingSupports": supports}),
        ],
        ours,
    )

    (candidate,) = merged["candidates"]
    parts = candidate["content"]["parts"]
    assert "".join(part["text"] for part in parts) == "Look.\n\nParis is big"
    for support in candidate["groundingMetadata"]["groundingSupports"]:
        segment = support["segment"]
        assert parts[segment["partIndex"]]["text"][: segment["endIndex"]] == "Paris"


def test_what_cohere_cites_is_in_the_block_where_it_was() -> None:
    def answer(*content: Document, **message: Any) -> Document:
        return {"message": {"content": list(content), **message}, "finish_reason": "COMPLETE"}

    merged = CohereToolSearch().merged(
        [
            answer(text("Rome"), citations=[{"text": "Rome", "content_index": 0}]),
            answer(thinking("t"), text("Paris"), citations=[{"text": "Paris", "content_index": 1}]),
        ],
        ours,
    )

    said = merged["message"]
    assert [said["content"][each["content_index"]]["text"] for each in said["citations"]] == ["Rome", "Paris"]


GROUNDING = {"toolUseId": "n", "name": "nova_grounding", "type": "server_tool_use"}


def test_bedrocks_own_tools_are_not_the_clients_to_call() -> None:
    codec = ConverseToolSearch()
    ran = [{"toolUse": {**GROUNDING, "input": {}}}, {"toolResult": {"toolUseId": "n", "content": [{"json": {}}]}}]
    search = {"toolUse": {"toolUseId": "s", "name": SEARCH, "input": {}}}

    def answer(*content: Document) -> Document:
        return {"output": {"message": {"content": list(content)}}, "stopReason": "tool_use"}

    assert [call.name for call in codec.calls(answer(*ran, search))] == [SEARCH]
    merged = codec.merged([answer(*ran, search), answer(*ran, {"text": "4"}, search)], ours)
    assert merged["output"]["message"]["content"] == [*ran, *ran, {"text": "4"}]
    assert merged["stopReason"] == "end_turn"


def test_bedrocks_own_tools_and_citations_are_replayed_whole() -> None:
    def block(index: int, *deltas: Document, start: Document | None = None) -> bytes:
        at = {"contentBlockIndex": index}
        begin = event_frame("contentBlockStart", {"start": start, **at}) if start else b""
        said = b"".join(event_frame("contentBlockDelta", {"delta": delta, **at}) for delta in deltas)
        return begin + said + event_frame("contentBlockStop", at)

    citation = {"title": "D", "sourceContent": [{"text": "x"}], "location": {"documentPage": {"documentIndex": 0}}}
    codec = ConverseToolSearch()
    sent, (answer,) = joined(
        codec,
        event_frame("messageStart", {"role": "assistant"})
        + block(0, {"toolUse": {"input": "{}"}}, start={"toolUse": GROUNDING})
        + block(1, {"toolResult": [{"json": {"a": 1}}]}, start={"toolResult": {"toolUseId": "n", "status": "success"}})
        + block(2, {"text": "As D says."}, {"citation": citation})
        + block(3, {"toolUse": {"input": QUERY}}, start={"toolUse": {"toolUseId": "s", "name": SEARCH}})
        + event_frame("messageStop", {"stopReason": "tool_use"}),
    )

    assert answer is not None
    assert answer["output"]["message"]["content"] == [
        {"toolUse": {**GROUNDING, "input": {}}},
        {"toolResult": {"toolUseId": "n", "status": "success", "content": [{"json": {"a": 1}}]}},
        {"citationsContent": {"content": [{"text": "As D says."}], "citations": [citation]}},
        {"toolUse": {"toolUseId": "s", "name": SEARCH, "input": {"query": "x"}}},
    ]
    assert [call.name for call in codec.calls(answer)] == [SEARCH]
    assert [frame.document for frame in EventFrames().whole(sent)][-1] == {"stopReason": "end_turn"}


def messages(first: Document, *deltas: Document, **ended: Any) -> bytes:
    search = {"type": "tool_use", "id": "t", "name": SEARCH, "input": {}}
    return stream(
        {"type": "message_start", "message": {"id": "m"}},
        {"type": "content_block_start", "index": 0, "content_block": first},
        *({"type": "content_block_delta", "index": 0, "delta": delta} for delta in deltas),
        {"type": "content_block_stop", "index": 0},
        {"type": "content_block_start", "index": 1, "content_block": search},
        {"type": "content_block_delta", "index": 1, "delta": {"type": "input_json_delta", "partial_json": QUERY}},
        {"type": "content_block_stop", "index": 1},
        {"type": "message_delta", "delta": {"stop_reason": "tool_use", **ended}},
        {"type": "message_stop"},
    )


@pytest.mark.parametrize(
    ("deltas", "whole"),
    [
        ([{"content": "Sum", "encrypted_content": "O"}], {"content": "Sum", "encrypted_content": "O"}),
        ([{"content": "Su"}, {"content": "m"}], {"content": "Sum"}),
        ([{"content": None}], {"content": None}),
    ],
)
def test_anthropics_compactions_are_replayed_as_they_were(deltas: list[Document], whole: Document) -> None:
    told = ({"type": "compaction_delta", **delta} for delta in deltas)
    _, (answer,) = joined(MessagesToolSearch(), messages({"type": "compaction", "content": None}, *told))

    assert answer is not None
    assert answer["content"][0] == {"type": "compaction", **whole}


@pytest.mark.parametrize(
    ("asked_for", "sent"), [(None, "k"), ("j", "k"), ({"skills": ["s"]}, {"skills": ["s"], "id": "k"})]
)
def test_anthropics_container_is_the_same_after_a_search(asked_for: Any, sent: Any) -> None:
    codec = MessagesToolSearch()
    _, (answer,) = joined(codec, messages({"type": "text", "text": "a"}, container={"id": "k", "expires_at": "z"}))
    assert answer is not None
    body = {"messages": []} | ({"container": asked_for} if asked_for else {})
    results = [(call, "{}") for call in codec.calls(answer)]
    again = json.loads(codec.continued(json.dumps(body).encode(), [SearchExchange(answer=answer, results=results)]))

    assert again["container"] == sent


def test_a_held_call_whose_input_came_at_once_reaches_anthropics_client_with_it() -> None:
    joiner = MessagesToolSearch().joiner()
    joiner.begin(lambda name: name == "hidden")
    call = {"type": "tool_use", "id": "b", "name": "hidden", "input": {"x": 1}}
    sent = joiner.feed(
        stream(
            {"type": "content_block_start", "index": 0, "content_block": call},
            {"type": "content_block_stop", "index": 0},
            {"type": "message_delta", "delta": {"stop_reason": "tool_use"}},
        )
    )
    joiner.close()
    deltas = [event["delta"] for event in events_of(sent + joiner.finish(ours)) if "partial_json" in str(event)]

    assert [json.loads(each["partial_json"]) for each in deltas] == [{"x": 1}]
