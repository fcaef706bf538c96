"""What providers refuse in a history with calls: each has its result right behind it, and thoughts are as they were."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import pairwise
from typing import Any


def messages_problems(body: Mapping[str, Any]) -> list[str]:
    by_hand = body.get("thinking", {}).get("type") == "enabled"
    return [*_messages(body["messages"]), *(_unthought(body["messages"]) if by_hand else ())]


def _unthought(messages: list[Any]) -> Iterator[str]:
    """With a budget for thinking, what answers the user's last words begins with a thinking block."""
    said = [place for place, message in enumerate(messages) if message["role"] == "user" and not _results(message)]
    answers = [message for message in messages[said[-1] if said else 0 :] if message["role"] == "assistant"]
    first = answers[0]["content"] if answers else []
    kind = first[0]["type"] if isinstance(first, list) and first else "thinking"
    if kind not in ("thinking", "redacted_thinking"):
        yield f"messages: expected `thinking` or `redacted_thinking`, but found `{kind}`"


def _results(message: Mapping[str, Any]) -> bool:
    content = message["content"]
    return isinstance(content, list) and any(block["type"] == "tool_result" for block in content)


def _messages(messages: list[Any]) -> Iterator[str]:
    open_: set[str] = set()
    for message in messages:
        blocks = message["content"] if isinstance(message["content"], list) else []
        results = {block["tool_use_id"] for block in blocks if block["type"] == "tool_result"}
        if results != open_:
            yield f"messages: tool_use {sorted(open_)} is followed by tool_result {sorted(results)}"
        open_ = {block["id"] for block in blocks if block["type"] == "tool_use"}
        if any(block["type"] == "text" and not block["text"].strip() for block in blocks):
            yield "messages: text content blocks must contain non-whitespace text"
        if not message["content"]:
            yield "messages: a message must have non-empty content"
    if open_:
        yield f"messages: tool_use {sorted(open_)} is followed by nothing"


def responses_problems(body: Mapping[str, Any]) -> list[str]:
    return list(_responses(body["input"] if isinstance(body["input"], list) else [], body))


CALLS = {
    "function_call": "function_call_output",
    "custom_tool_call": "custom_tool_call_output",
    "tool_search_call": "tool_search_output",
}
"""The items that have to be answered, and how."""


def _responses(items: list[Any], body: Mapping[str, Any]) -> Iterator[str]:
    yield from _called(items, body)
    asked = [item for item in items if item.get("execution") != "server"]
    calls = {item["call_id"] for item in asked if item.get("type") in CALLS}
    results = {item["call_id"] for item in asked if item.get("type") in CALLS.values()}
    for id_ in sorted(calls - results):
        yield f"No tool output found for function call {id_}."
    for id_ in sorted(results - calls) if body.get("previous_response_id") is None else ():
        yield f"No tool call found for function call output with call_id {id_}."
    yield from _led_to_nothing(items)
    if body.get("store") is False:
        for item in items:
            if item.get("type") == "reasoning" and "encrypted_content" not in item:
                yield f"Item with id {item['id']!r} not found. Items are not persisted when `store` is set to false."


def _led_to_nothing(items: list[Any]) -> Iterator[str]:
    """What a thought led to follows it: of scripted models, an item of the same answer."""
    for item, after in pairwise([*items, {}]):
        answer = item.get("id", "").removeprefix("rs_")
        if item.get("type") == "reasoning" and answer not in after.get("id", answer if after else ""):
            yield f"Item {item['id']!r} of type 'reasoning' was provided without its required following item."


def _called(items: list[Any], body: Mapping[str, Any]) -> Iterator[str]:
    """Each call has the namespace of its tool, which the request lists or a search before it loaded."""
    there = set(_names(body.get("tools", ())))
    searches = any(tool["type"] == "tool_search" for tool in body.get("tools", ()))
    if not searches and any(item.get("type") == "tool_search_output" for item in items):
        yield "tool_search_output needs tool_search"
    for item in items:
        if item.get("type") == "tool_search_output":
            loaded = list(_names(item["tools"]))
            yield from (f"{name} is loaded twice" for name in loaded if name in there)
            there |= set(loaded)
        elif item.get("type") == "additional_tools":
            there |= set(_names(item["tools"]))
        elif item.get("type") in ("function_call", "custom_tool_call"):
            name, namespace = item["name"], item.get("namespace", "")
            if namespace and (namespace, name) not in there:
                yield f"Tool {namespace}.{name} is not there."
            if not namespace and ("", name) not in there and any(name == inside for _, inside in there):
                yield f"Missing namespace for function_call {name!r}. It does not exist in the default namespace."


def _names(tools: Iterable[Mapping[str, Any]]) -> Iterator[tuple[str, str]]:
    """Namespace and name of each."""
    for tool in tools:
        if tool["type"] == "namespace":
            yield from ((tool["name"], each["name"]) for each in tool["tools"])
        elif "name" in tool:
            yield "", tool["name"]


def contents_problems(body: Mapping[str, Any]) -> list[str]:
    return list(_contents(body["contents"]))


def _contents(contents: list[Any]) -> Iterator[str]:
    open_: list[str] = []
    for content in contents:
        if not content.get("parts"):
            yield "contents: a content has no parts"
        answers = [part["functionResponse"]["name"] for part in content["parts"] if "functionResponse" in part]
        if answers != open_:
            yield f"contents: function calls {open_} are followed by function responses {answers}"
        open_ = [part["functionCall"]["name"] for part in content["parts"] if "functionCall" in part]


def unsigned(format_: str, body: Mapping[str, Any]) -> list[str]:
    """What Gemini 3 refuses: in the current turn, the first of the calls of each answer has its thought signature."""
    if format_ == "gemini":
        said = body["contents"]
        asked = [place for place, each in enumerate(said) if any("text" in part for part in each["parts"])]
        asked = [place for place in asked if said[place].get("role", "user") == "user"]
        answers = [[part for part in each["parts"] if "functionCall" in part] for each in said[asked[-1] :]]
        signed = ["thoughtSignature" in calls[0] for calls in answers if calls]
    else:
        said = body.get("messages", [])
        asked = [place for place, each in enumerate(said) if each["role"] == "user"]
        answers = [each.get("tool_calls") or [] for each in said[asked[-1] :]]
        signed = ["thought_signature" in str(calls[0].get("extra_content")) for calls in answers if calls]
    return [] if all(signed) else ["Function call is missing a thought_signature in functionCall parts."]


def converse_problems(body: Mapping[str, Any]) -> list[str]:
    return list(_converse(body["messages"]))


def _converse(messages: list[Any]) -> Iterator[str]:
    """Roles alternate, blocks of texts say something, and the next message has the results of all calls."""
    open_: list[str] = []
    for place, message in enumerate(messages):
        if message["role"] != ("user", "assistant")[place % 2]:
            yield "A conversation must alternate between user and assistant roles."
        if not message["content"]:
            yield f"The content field in the Message object at messages.{place} is empty."
        if any("text" in block and not block["text"].strip() for block in message["content"]):
            yield f"The text field in the ContentBlock object at messages.{place} is blank."
        results = [block["toolResult"]["toolUseId"] for block in message["content"] if "toolResult" in block]
        if sorted(results) != sorted(open_):
            yield f"Expected toolResult blocks at messages.{place}.content for the Ids {open_}, but found {results}."
        uses = [block["toolUse"] for block in message["content"] if "toolUse" in block]
        if any(not isinstance(use["input"], Mapping) for use in uses):
            yield f"The format of the value at messages.{place}.content.toolUse.input is invalid. Provide an object."
        open_ = [use["toolUseId"] for use in uses]
    if open_:
        yield f"Expected toolResult blocks for the Ids {open_}, but found nothing."


def cohere_problems(body: Mapping[str, Any]) -> list[str]:
    return list(_cohere(body["messages"]))


def _cohere(messages: list[Any]) -> Iterator[str]:
    """Messages with results follow the message with their calls, and each has one."""
    open_: list[str] = []
    for message in messages:
        if message["role"] == "tool":
            if message["tool_call_id"] not in open_:
                yield f"invalid tool message: no tool call has the id {message['tool_call_id']!r}"
            open_ = [each for each in open_ if each != message["tool_call_id"]]
            continue
        if open_:
            yield f"the tool calls {open_} must be followed by tool messages"
        calls = message.get("tool_calls") or []
        if any(not isinstance(call["function"]["arguments"], str) for call in calls):
            yield "the arguments of a tool call must be a string"
        open_ = [call["id"] for call in calls]
        if message["role"] == "assistant" and not (message.get("content") or calls):
            yield "an assistant message must have content or tool calls"
    if open_:
        yield f"the tool calls {open_} must be followed by tool messages"


def no_problems(_: Mapping[str, Any]) -> list[str]:
    return []


CONVERSATIONS: Mapping[str, Callable[[Mapping[str, Any]], list[str]]] = {
    "openai_chat": no_problems,
    "openai_responses": responses_problems,
    "anthropic": messages_problems,
    "gemini": contents_problems,
    "bedrock": converse_problems,
    "cohere": cohere_problems,
}
"""By the name of a codec; of chat completions, `PROBLEMS` says it already."""
