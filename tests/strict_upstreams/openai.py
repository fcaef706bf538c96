"""Chat Completions and Responses: the API reference, and the messages its 400s have."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from strict_upstreams.checks import badly_named, listed, repeated, unfit_schema, without_tools

NAME = r"[a-zA-Z0-9_-]{1,64}"
MOST_TOOLS = 128


def chat_problems(body: Mapping[str, Any]) -> list[str]:
    return list(_chat(body))


def responses_problems(body: Mapping[str, Any]) -> list[str]:
    return list(_responses(body))


def _chat(body: Mapping[str, Any]) -> Iterator[str]:
    messages, wrong = listed(body, "messages")
    yield from wrong if "messages" in body else ["messages is missing"]
    tools, wrong = listed(body, "tools")
    yield from wrong
    named = [tool.get(tool.get("type", "function"), {}) for tool in tools]
    yield from _functions(named)
    if not tools:
        yield from without_tools(body, ["tool_choice", "parallel_tool_calls"])
    offered = {(tool.get("type"), each.get("name")) for tool, each in zip(tools, named, strict=True)}
    choice = body.get("tool_choice", "auto")
    if isinstance(choice, Mapping) and choice.get("type") == "allowed_tools":
        yield from _allowed(choice["allowed_tools"], {(kind, name) for kind, name in offered}, nested=True)
    elif isinstance(choice, Mapping):
        wanted = (choice.get("type"), choice.get(choice["type"], {}).get("name"))
        if wanted not in offered:
            yield f"tool_choice: {wanted} not found in 'tools'"
    elif choice not in ("none", "auto", "required"):
        yield f"tool_choice: {choice!r} is not one of none, auto, required"
    yield from _legacy(body)
    yield from _answered(messages)


def _functions(named: list[Mapping[str, Any]]) -> Iterator[str]:
    if len(named) > MOST_TOOLS:
        yield f"tools: {len(named)} are too many"
    yield from badly_named([each.get("name") for each in named], NAME)
    yield from repeated(str(each.get("name")) for each in named)
    for each in named:
        yield from unfit_schema(str(each.get("name")), each.get("parameters"), required=False)


def _allowed(allowed: Mapping[str, Any], offered: set[tuple[Any, Any]], *, nested: bool) -> Iterator[str]:
    if allowed.get("mode") not in ("auto", "required"):
        yield f"allowed_tools: the mode is {allowed.get('mode')!r}"
    if not allowed.get("tools"):
        yield "allowed_tools: tools is too short"
    for entry in allowed.get("tools", ()):
        kind = entry.get("type")
        name = entry.get(kind, {}).get("name") if nested else entry.get("name")
        if kind in ("function", "custom") and (kind, name) not in offered:
            yield f"allowed_tools: {name!r} not found in 'tools'"


def _legacy(body: Mapping[str, Any]) -> Iterator[str]:
    functions, wrong = listed(body, "functions")
    yield from wrong
    yield from _functions(functions)
    if "functions" in body and "tools" in body:
        yield "functions and tools are both there"
    if not functions:
        yield from without_tools(body, ["function_call"])
    choice = body.get("function_call")
    if isinstance(choice, Mapping) and choice.get("name") not in [each.get("name") for each in functions]:
        yield f"function_call: {choice.get('name')!r} not found in 'functions'"


def _answered(messages: list[Any]) -> Iterator[str]:
    """Every call has its result right behind it, and every result a call right before it."""
    open_: set[str] = set()
    for message in messages:
        if message.get("role") == "tool":
            if message.get("tool_call_id") not in open_:
                yield "messages: a tool message follows no call of its id"
            open_.discard(message.get("tool_call_id"))
            continue
        if open_:
            yield f"messages: the calls {sorted(open_)} have no result"
        open_ = {call["id"] for call in message.get("tool_calls") or ()}


def _responses(body: Mapping[str, Any]) -> Iterator[str]:
    if "input" not in body and "previous_response_id" not in body:
        yield "input is missing"
    if "conversation" in body and "previous_response_id" in body:
        yield "conversation and previous_response_id are both there"
    tools, wrong = listed(body, "tools")
    yield from wrong
    functions = [tool for tool in tools if tool.get("type") in ("function", "custom")]
    yield from _functions(functions)
    yield from _namespaces(tools)
    yield from _searches(tools, body)
    inside = [each for tool in tools if tool.get("type") == "namespace" for each in tool.get("tools", ())]
    for tool in [*functions, *inside]:
        if "function" in tool:
            yield f"tools: {tool.get('name')!r} is nested"
    deferred = [tool for tool in [*functions, *inside] if tool.get("defer_loading")]
    if deferred and "tool_search" not in [each["type"] for each in tools]:
        yield "tools: deferred tools need tool_search"
    if not tools and not _added(body):
        yield from without_tools(body, ["tool_choice"])
    offered = {(tool["type"], tool.get("name")) for tool in functions}
    choice = body.get("tool_choice", "auto")
    if isinstance(choice, Mapping) and choice.get("type") == "allowed_tools":
        yield from _allowed(choice, offered, nested=False)
    elif isinstance(choice, Mapping) and choice.get("type") in ("function", "custom"):
        if (choice["type"], choice.get("name")) not in offered:
            yield f"tool_choice: {choice.get('name')!r} not found in 'tools'"
    elif isinstance(choice, Mapping) and choice.get("type") not in [tool["type"] for tool in tools]:
        yield f"tool_choice: {choice.get('type')!r} not found in 'tools'"


def _namespaces(tools: list[Mapping[str, Any]]) -> Iterator[str]:
    """https://developers.openai.com/api/docs/guides/function-calling#defining-namespaces"""
    namespaces = [tool for tool in tools if tool.get("type") == "namespace"]
    yield from badly_named([each.get("name") for each in namespaces], NAME)
    yield from repeated(str(each.get("name")) for each in namespaces)
    for each in namespaces:
        inside, wrong = listed(each, "tools")
        yield from wrong if "tools" in each else ["namespace: tools is missing"]
        if not isinstance(each.get("description"), str):
            yield f"namespace {each.get('name')!r}: the description is missing"
        if any(tool.get("type") not in ("function", "custom") for tool in inside):
            yield f"namespace {each.get('name')!r}: only functions and custom tools are allowed"
        yield from badly_named([tool.get("name") for tool in inside], NAME)
        yield from repeated(str(tool.get("name")) for tool in inside)


def _searches(tools: list[Mapping[str, Any]], body: Mapping[str, Any]) -> Iterator[str]:
    """https://developers.openai.com/api/docs/guides/tools-tool-search"""
    searches = [tool for tool in tools if tool.get("type") == "tool_search"]
    if len(searches) > 1:
        yield "tools: tool_search is there several times"
    if searches and re.match(r"gpt-(3|4|5$|5-|5\.[0-3]\b)", str(body.get("model"))):
        yield f"tool_search is not supported with {body['model']}"
    for search in searches:
        if search.get("execution") == "client" and not isinstance(search.get("parameters"), Mapping):
            yield "tool_search: parameters are missing"
        if search.get("execution") != "client" and "parameters" in search:
            yield "tool_search: parameters are for one that the client executes"


def _added(body: Mapping[str, Any]) -> bool:
    """Whether an item of the input brings tools."""
    said = body.get("input")
    return isinstance(said, list) and any(item.get("type") == "additional_tools" for item in said)
