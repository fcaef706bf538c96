"""Model requests for tests, in every format, with the few parts that a test is about."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from typing import Any

from pegboard.gateways.llm.formats import registry
from pegboard.gateways.llm.formats.call_tool import CallToolCodec
from pegboard.gateways.llm.formats.protocol import Codec, LlmRequest
from pegboard.gateways.llm.formats.tool_choice import WhenNone, apply_tool_choice
from pegboard.gateways.llm.formats.tool_search import ToolSearchCodec

ELSEWHERE = ("bedrock", "cohere")
NAMED = [each for each in registry.FORMATS if each.call_tool is not None and each.name not in ELSEWHERE]
"""The formats that have a scripted provider; the others have tests of their own (`test_more_providers` and
`test_more_providers_search`)."""
CODECS: Mapping[str, Codec] = {each.name: each.codec for each in NAMED}
TOOL_SEARCH: Mapping[str, ToolSearchCodec] = {each.name: each.tool_search for each in NAMED if each.tool_search}
CALL_TOOL: Mapping[str, CallToolCodec] = {each.name: each.call_tool for each in NAMED if each.call_tool}
FORMATS = list(CODECS)
PATH = "/v1beta/models/some-model:generateContent"
NAMES = ("alpha", "beta", "gamma", "delta")
SIZED: Mapping[str, Any] = {
    "type": "object",
    "properties": {
        "what": {"type": "string", "description": "What it is about, as it is written in the list of entries. " * 8},
        "when": {"type": "string", "description": "A date and a time with its zone, or a span of two of them. " * 8},
    },
}
"""A schema as long as those of real tools: leaving such a tool out saves more than a search for it costs."""


def parsed(name: str, body: Mapping[str, Any]) -> LlmRequest:
    return CODECS[name].parse(json.dumps(body).encode(), PATH)


def filtered(
    name: str, body: Mapping[str, Any], *wanted: str, barred: Collection[int] = (), when_none: WhenNone = "all"
) -> Any:
    """The body that leaves when these tools are relevant."""
    request = parsed(name, body)
    relevant = {place: "relevant" for place, tool in enumerate(request.tools) if tool.name in wanted}
    kept = apply_tool_choice(request, relevant, barred=barred, when_none=when_none)
    return json.loads(CODECS[name].rewrite(request, kept.places))


def names_of(name: str, body: Mapping[str, Any]) -> list[str]:
    """The tools that a body offers by name."""
    return [tool.name for tool in parsed(name, body).tools if tool.name]


def asking(
    name: str,
    said: str = "Hello",
    tools: Collection[str] = NAMES,
    *,
    schema: Mapping[str, Any] | None = None,
    **more: Any,
) -> dict[str, Any]:
    """A request of one user message, in this format, with tools of these names, all with this schema if any."""
    message = {"role": "user", "content": said}
    given: dict[str, Any] = {} if schema is None else {"parameters": schema}
    match name:
        case "openai_chat":
            return {"messages": [message], "tools": [function(tool, **given) for tool in tools]} | more
        case "openai_responses":
            declared = [{"type": "function", "name": tool} | given for tool in tools]
            return {"input": [message], "tools": declared} | more
        case "anthropic":
            given = {} if schema is None else {"input_schema": schema}
            return {"messages": [message], "tools": [anthropic_tool(tool, **given) for tool in tools]} | more
        case _:
            declared = [{"name": tool} | given for tool in tools]
            contents = [{"role": "user", "parts": [{"text": said}]}]
            return {"contents": contents, "tools": [{"functionDeclarations": declared}]} | more


def function(name: str, **more: Any) -> dict[str, Any]:
    return {"type": "function", "function": {"name": name} | more}


def anthropic_tool(name: str, **more: Any) -> dict[str, Any]:
    return {"name": name, "input_schema": {"type": "object"}} | more


def called(name: str, tool: str, result: str = "done") -> list[dict[str, Any]]:
    """What a call of a tool, and its result, add to a conversation."""
    match name:
        case "openai_chat":
            call = {"id": "c1", "type": "function", "function": {"name": tool, "arguments": "{}"}}
            said = {"role": "assistant", "content": None, "tool_calls": [call]}
            return [said, {"role": "tool", "tool_call_id": "c1", "content": result}]
        case "openai_responses":
            call = {"type": "function_call", "call_id": "c1", "name": tool, "arguments": "{}"}
            return [call, {"type": "function_call_output", "call_id": "c1", "output": result}]
        case "anthropic":
            use = {"type": "tool_use", "id": "t1", "name": tool, "input": {}}
            answer = {"type": "tool_result", "tool_use_id": "t1", "content": result}
            return [{"role": "assistant", "content": [use]}, {"role": "user", "content": [answer]}]
        case _:
            call = {"functionCall": {"name": tool, "args": {}}, "thoughtSignature": "c2lnbmVk"}
            answer = {"functionResponse": {"name": tool, "response": {"result": result}}}
            return [{"role": "model", "parts": [call]}, {"role": "user", "parts": [answer]}]


CONVERSATION = {"openai_chat": "messages", "openai_responses": "input", "anthropic": "messages", "gemini": "contents"}


def after_a_call(name: str, tool: str, said: str = "Hello", result: str = "done", **more: Any) -> dict[str, Any]:
    """A request in which this tool has been called."""
    body = asking(name, said, **more)
    return body | {CONVERSATION[name]: body[CONVERSATION[name]] + called(name, tool, result)}


def forcing(name: str, tool: str) -> dict[str, Any]:
    """The fields that force a call of this tool."""
    match name:
        case "openai_chat":
            return {"tool_choice": {"type": "function", "function": {"name": tool}}}
        case "openai_responses":
            return {"tool_choice": {"type": "function", "name": tool}}
        case "anthropic":
            return {"tool_choice": {"type": "tool", "name": tool}}
        case _:
            return {"toolConfig": {"functionCallingConfig": {"mode": "ANY", "allowedFunctionNames": [tool]}}}


REQUIRING: Mapping[str, dict[str, Any]] = {
    "openai_chat": {"tool_choice": "required"},
    "openai_responses": {"tool_choice": "required"},
    "anthropic": {"tool_choice": {"type": "any"}},
    "gemini": {"tool_config": {"function_calling_config": {"mode": "ANY"}}},
}
CHOOSING: Mapping[str, dict[str, Any]] = {
    "openai_chat": {"tool_choice": "auto", "parallel_tool_calls": False},
    "openai_responses": {"tool_choice": "auto", "parallel_tool_calls": False},
    "anthropic": {"tool_choice": {"type": "auto"}},
    "gemini": {"toolConfig": {"functionCallingConfig": {"mode": "AUTO"}}},
}
"""Fields that leave the choice to the model, and may not be there without tools."""
