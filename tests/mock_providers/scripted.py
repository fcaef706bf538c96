"""A model by a script, in every wire format: it sees what it was sent, and says what the script makes of it."""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from mock_providers.tool_search import in_prompt, referenced, searched
from mock_providers.wire import Reply

USED = {"input": 100, "output": 20}
"""Tokens of each answer."""
STREAMS = "(streams)"
"""Where a request that says it in its path is noted to be for a stream."""
SIGNS = "(signs)"
"""Where a request to a model of Gemini 3 is noted, which signs the first call of each answer."""
NOT_MADE = "tool_not_listed"
"""The gateway's word on a call that is to be made again."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Calls:
    tool: str
    arguments: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Says:
    """One answer: thoughts, then text, then calls, each only where there are some.

    ``searches`` is a query to the provider's own search for tools; the model goes on with what that found.
    """

    text: str = ""
    calls: Sequence[Calls] = ()
    thought: str = ""
    searches: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """What a model gets: the names of tools it may call, those that have answered, and the request as it is."""

    tools: tuple[str, ...]
    answered: tuple[str, ...]
    body: Mapping[str, Any]


Model = Callable[[Seen], Says]


def chat(model: Model, asked: Mapping[str, Any], id_: str) -> Reply:
    names = {call["id"]: called(call)["name"] for said in asked["messages"] for call in said.get("tool_calls") or ()}
    answered = [
        names[said["tool_call_id"]]
        for said in asked["messages"]
        if said["role"] == "tool" and NOT_MADE not in said["content"]
    ]
    tools = [called(tool)["name"] for tool in asked.get("tools", ())]
    says = model(Seen(tools=tuple(tools), answered=tuple(answered), body=asked))
    shared = {"id": id_, "created": int(id_.rpartition("_")[2]), "model": asked.get("model", "")}
    usage = {"prompt_tokens": USED["input"], "completion_tokens": USED["output"], "total_tokens": sum(USED.values())}
    usage |= {"prompt_tokens_details": {"cached_tokens": 10}}
    free = {called(tool)["name"] for tool in asked.get("tools", ()) if tool["type"] == "custom"}
    calls = [_chat_call(call, f"call_{id_}_{place}", free) for place, call in enumerate(says.calls)]
    if calls and asked.get(SIGNS):
        calls[0]["extra_content"] = {"google": {"thought_signature": signature(id_)}}
    reason = "tool_calls" if calls else "stop"
    if not asked.get("stream"):
        message = {"role": "assistant", "content": says.text or None, "refusal": None}
        message |= {"tool_calls": calls} if calls else {}
        choice = {"index": 0, "message": message, "logprobs": None, "finish_reason": reason}
        return Reply(document=shared | {"object": "chat.completion", "choices": [choice], "usage": usage})

    def chunk(delta: Mapping[str, Any], finished: str | None = None) -> tuple[str, Any]:
        choice = {"index": 0, "delta": delta, "finish_reason": finished}
        return "", shared | {"object": "chat.completion.chunk", "choices": [choice]}

    events = [chunk({"role": "assistant", "content": None if calls else ""})]
    events += [chunk({"content": piece}) for piece in pieces(says.text)]
    for place, call in enumerate(calls):
        kind = call["type"]
        said = "arguments" if kind == "function" else "input"
        events.append(chunk({"tool_calls": [call | {"index": place, kind: call[kind] | {said: ""}}]}))
        events += [chunk({"tool_calls": [{"index": place, kind: {said: piece}}]}) for piece in pieces(call[kind][said])]
    events.append(chunk({}, reason))
    if asked.get("stream_options", {}).get("include_usage"):
        events.append(("", shared | {"object": "chat.completion.chunk", "choices": [], "usage": usage}))
    return Reply(events=[*events, ("", "[DONE]")])


def _chat_call(call: Calls, id_: str, free: Collection[str]) -> dict[str, Any]:
    """``free``: the tools that take text, the call's only argument."""
    if call.tool in free:
        (text,) = call.arguments.values()
        return {"id": id_, "type": "custom", "custom": {"name": call.tool, "input": text}}
    return {"id": id_, "type": "function", "function": {"name": call.tool, "arguments": json.dumps(call.arguments)}}


def called(tool: Mapping[str, Any]) -> Mapping[str, Any]:
    """What a tool or a call of Chat Completions says: a function, or a custom tool, whose input is text."""
    return dict(tool.get("function") or tool["custom"])


def messages(model: Model, asked: Mapping[str, Any], id_: str) -> Reply:
    blocks = [block for said in asked["messages"] for block in said["content"] if isinstance(block, dict)]
    names = {block["id"]: block["name"] for block in blocks if block["type"] == "tool_use"}
    answered = [
        names[block["tool_use_id"]]
        for block in blocks
        if block["type"] == "tool_result" and NOT_MADE not in str(block["content"])
    ]
    tools = list(in_prompt(asked))
    content: list[dict[str, Any]] = []
    searching = True
    while searching:
        says = model(Seen(tools=tuple(tools), answered=tuple(answered), body=asked))
        if says.thought:
            content.append({"type": "thinking", "thinking": says.thought, "signature": signature(says.thought)})
        if says.text:
            content.append({"type": "text", "text": says.text})
        searching = bool(says.searches)
        if searching:
            content += searched(asked, says.searches, f"srvtoolu_{id_}_{len(content)}")
            tools += referenced([{"content": content[-1:]}])
    content += [
        {"type": "tool_use", "id": f"toolu_{id_}_{place}", "name": call.tool, "input": call.arguments}
        for place, call in enumerate(says.calls)
    ]
    reason = "tool_use" if says.calls else "end_turn"
    usage = {"input_tokens": USED["input"], "cache_read_input_tokens": 10, "output_tokens": USED["output"]}
    message = {
        "id": id_,
        "type": "message",
        "role": "assistant",
        "model": asked.get("model", ""),
        "content": content,
        "stop_reason": reason,
        "stop_sequence": None,
        "usage": usage,
    }
    if not asked.get("stream"):
        return Reply(document=message)
    begun = message | {"content": [], "stop_reason": None, "usage": usage | {"output_tokens": 1}}
    events: list[dict[str, Any]] = [{"type": "message_start", "message": begun}, {"type": "ping"}]
    for place, block in enumerate(content):
        events += [{"type": "content_block_start", "index": place, "content_block": _empty(block)}]
        events += [{"type": "content_block_delta", "index": place, "delta": delta} for delta in _deltas(block)]
        events += [{"type": "content_block_stop", "index": place}]
    ended = {"stop_reason": reason, "stop_sequence": None}
    events.append({"type": "message_delta", "delta": ended, "usage": {"output_tokens": USED["output"]}})
    events.append({"type": "message_stop"})
    return Reply(events=[(event["type"], event) for event in events])


def _empty(block: Mapping[str, Any]) -> dict[str, Any]:
    nothing = {"text": "", "thinking": "", "signature": "", "input": {}}
    return {name: nothing.get(name, value) for name, value in block.items()}


def _deltas(block: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    match block["type"]:
        case "thinking":
            yield from ({"type": "thinking_delta", "thinking": piece} for piece in pieces(block["thinking"]))
            yield {"type": "signature_delta", "signature": block["signature"]}
        case "text":
            yield from ({"type": "text_delta", "text": piece} for piece in pieces(block["text"]))
        case "tool_use" | "server_tool_use":
            written = pieces(json.dumps(block["input"]))
            yield from ({"type": "input_json_delta", "partial_json": piece} for piece in written)


def signature(thought: str) -> str:
    """What only the provider could have written of a thought."""
    return hashlib.sha256(f"secret {thought}".encode()).hexdigest()


def pieces(text: str) -> list[str]:
    """In three parts, as far as it reaches."""
    size = len(text) // 3 + 1
    return [text[start : start + size] for start in range(0, len(text), size)]


CALL_ITEMS = ("function_call", "custom_tool_call")
RESULT_ITEMS = ("function_call_output", "custom_tool_call_output")


def _listed(tools: Sequence[Mapping[str, Any]], namespace: str = "") -> Iterator[tuple[str, str]]:
    """Names and types; the name of one in a namespace is `NAMESPACE.NAME`."""
    for tool in tools:
        if tool["type"] == "namespace":
            yield from _listed(tool["tools"], tool["name"])
        else:
            yield _qualified(tool | {"namespace": namespace}), tool["type"]


def _qualified(item: Mapping[str, Any]) -> str:
    name = item.get("name", item["type"])
    return f"{item['namespace']}.{name}" if item.get("namespace") else name


def _call(call: Calls, kind: str | None, id_: str) -> dict[str, Any]:
    if kind == "tool_search":
        item = {"type": "tool_search_call", "id": f"tsc_{id_}", "call_id": f"call_{id_}", "execution": "client"}
        return item | {"arguments": call.arguments, "status": "completed"}
    namespace, _, name = call.tool.rpartition(".")
    item = {"call_id": f"call_{id_}", "name": name, "status": "completed"}
    item |= {"namespace": namespace} if namespace else {}
    if kind == "custom":
        return item | {"type": "custom_tool_call", "id": f"ctc_{id_}", "input": call.arguments["input"]}
    return item | {"type": "function_call", "id": f"fc_{id_}", "arguments": json.dumps(call.arguments)}


def responses(model: Model, asked: Mapping[str, Any], id_: str) -> Reply:
    said = asked["input"] if isinstance(asked["input"], list) else []
    names = {item["call_id"]: _qualified(item) for item in said if item.get("type") in CALL_ITEMS}
    answered = [
        names[item["call_id"]]
        for item in said
        if item.get("type") in RESULT_ITEMS and NOT_MADE not in str(item["output"])
    ]
    tools = dict(_listed(asked.get("tools", ())))
    for item in said:
        if item.get("type") in ("additional_tools", "tool_search_output"):
            tools |= dict(_listed(item["tools"]))
    says = model(Seen(tools=tuple(tools), answered=tuple(answered), body=asked))
    output: list[dict[str, Any]] = []
    if says.thought:
        output.append({"type": "reasoning", "id": f"rs_{id_}", "summary": []})
        if "reasoning.encrypted_content" in asked.get("include", ()):
            output[-1]["encrypted_content"] = signature(says.thought)
    if says.text:
        text = {"type": "output_text", "text": says.text, "annotations": []}
        message = {"type": "message", "id": f"msg_{id_}", "role": "assistant", "status": "completed", "content": [text]}
        output.append(message)
    output += [_call(call, tools.get(call.tool), f"{id_}_{place}") for place, call in enumerate(says.calls)]
    response = {
        "id": id_,
        "object": "response",
        "created_at": 1,
        "status": "completed",
        "model": asked.get("model", ""),
        "output": output,
        "parallel_tool_calls": True,
        "previous_response_id": asked.get("previous_response_id"),
        "store": asked.get("store", True),
        "tool_choice": asked.get("tool_choice", "auto"),
        "tools": asked.get("tools", []),
        "usage": {
            "input_tokens": USED["input"],
            "input_tokens_details": {"cached_tokens": 0},
            "output_tokens": USED["output"],
            "output_tokens_details": {"reasoning_tokens": 0},
            "total_tokens": sum(USED.values()),
        },
    }
    if not asked.get("stream"):
        return Reply(document=response)
    begun = response | {"status": "in_progress", "output": [], "usage": None}
    events: list[dict[str, Any]] = [
        {"type": "response.created", "response": begun},
        {"type": "response.in_progress", "response": begun},
    ]
    for place, item in enumerate(output):
        events += _item_events(place, item)
    events.append({"type": "response.completed", "response": response})
    return Reply(events=[(event["type"], event | {"sequence_number": number}) for number, event in enumerate(events)])


def _item_events(place: int, item: dict[str, Any]) -> list[dict[str, Any]]:
    at = {"item_id": item["id"], "output_index": place}
    opened, inside = item, []
    if item["type"] == "function_call":
        opened = item | {"arguments": "", "status": "in_progress"}
        inside = [
            {"type": "response.function_call_arguments.delta", "delta": piece} | at
            for piece in pieces(item["arguments"])
        ]
        done = {"type": "response.function_call_arguments.done", "arguments": item["arguments"], "name": item["name"]}
        inside.append(done | at)
    elif item["type"] == "custom_tool_call":
        opened = item | {"input": "", "status": "in_progress"}
        inside = [
            {"type": "response.custom_tool_call_input.delta", "delta": piece} | at for piece in pieces(item["input"])
        ]
        inside.append({"type": "response.custom_tool_call_input.done", "input": item["input"]} | at)
    elif item["type"] == "message":
        opened, part, at = (
            item | {"content": [], "status": "in_progress"},
            item["content"][0],
            at | {"content_index": 0},
        )
        inside = [
            {"type": "response.content_part.added", "part": part | {"text": ""}} | at,
            *(
                {"type": "response.output_text.delta", "delta": piece, "logprobs": []} | at
                for piece in pieces(part["text"])
            ),
            {"type": "response.output_text.done", "text": part["text"], "logprobs": []} | at,
            {"type": "response.content_part.done", "part": part} | at,
        ]
    return [
        {"type": "response.output_item.added", "output_index": place, "item": opened},
        *inside,
        {"type": "response.output_item.done", "output_index": place, "item": item},
    ]


def contents(model: Model, asked: Mapping[str, Any], id_: str) -> Reply:
    answers = [
        part["functionResponse"] for said in asked["contents"] for part in said["parts"] if "functionResponse" in part
    ]
    answered = [answer["name"] for answer in answers if NOT_MADE not in str(answer["response"])]
    tools = [each["name"] for group in asked.get("tools", ()) for each in declarations_of(group)]
    says = model(Seen(tools=tuple(tools), answered=tuple(answered), body=asked))
    calls = [{"functionCall": {"name": call.tool, "args": call.arguments}} for call in says.calls]
    if calls and (says.thought or asked.get(SIGNS)):
        calls[0]["thoughtSignature"] = base64.b64encode(signature(says.thought).encode()).decode()
    usage = {
        "promptTokenCount": USED["input"],
        "candidatesTokenCount": USED["output"],
        "totalTokenCount": sum(USED.values()),
        "promptTokensDetails": [{"modality": "TEXT", "tokenCount": USED["input"]}],
    }

    def answer(parts: list[Any], **more: Any) -> dict[str, Any]:
        candidate = {"content": {"role": "model", "parts": parts}, "index": 0} | more
        return {"candidates": [candidate], "usageMetadata": usage, "modelVersion": "m", "responseId": id_}

    if not asked[STREAMS]:
        return Reply(document=answer([*([{"text": says.text}] if says.text else []), *calls], finishReason="STOP"))
    events = [answer([part]) for part in [*({"text": piece} for piece in pieces(says.text)), *calls]]
    *before, last = events
    return Reply(events=[("", each) for each in [*before, answer(parts_of(last), finishReason="STOP")]])


def declarations_of(group: Mapping[str, Any]) -> list[Any]:
    """Those of a group of tools, in either spelling; none in one of hosted tools."""
    return list(group.get("functionDeclarations", group.get("function_declarations", ())))


def parts_of(answer: Mapping[str, Any]) -> list[Any]:
    return list(answer["candidates"][0]["content"]["parts"])


SCRIPTED: Mapping[str, Callable[[Model, Mapping[str, Any], str], Reply]] = {
    "openai_chat": chat,
    "openai_responses": responses,
    "anthropic": messages,
    "gemini": contents,
}
