"""OpenAI Chat Completions, for OpenAI and compatible servers; also the legacy `functions`."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace
from typing import Any
from urllib.parse import unquote

import msgspec

from pegboard.catalog.ingest.provider_tools import tool_from_openai
from pegboard.gateways.llm.formats.contents import parts_of, result_of
from pegboard.gateways.llm.formats.json_reader import object_of, objects_of, text_of, value_of
from pegboard.gateways.llm.formats.json_spans import Member, Span, elements
from pegboard.gateways.llm.formats.openai_chat.response import ChatAnswer
from pegboard.gateways.llm.formats.protocol import LlmRequest, Observer, OfferedTool, parsed
from pegboard.gateways.llm.formats.streams import observer
from pegboard.gateways.llm.formats.tool_arrays import (
    CachedTool,
    choice_of,
    given,
    name_in,
    narrowed,
    offered,
    remembering,
    rewritten,
)
from pegboard.model import JsonObject, Message, Part, Role, Tool, Turn

ROLES: Mapping[str, Role] = {"user": "user", "assistant": "assistant", "tool": "tool", "function": "tool"}
"""Other roles (`system`, `developer`) are instructions."""
DEPENDENT = ("tool_choice", "parallel_tool_calls", "function_call")
"""Fields that are rejected without tools (P10)."""
DEPLOYMENT = re.compile(r"/deployments/([^/]+)/", re.IGNORECASE)


class _Named(msgspec.Struct):
    name: str


class _Tool(CachedTool):
    type: str = "function"
    function: _Named | None = None
    custom: _Named | None = None
    name: str | None = None

    @property
    def called(self) -> str:
        """The tool's name, nested or flat (P22)."""
        of = self.custom if self.type == "custom" else self.function
        return of.name if of else self.name or ""


TOOL = msgspec.json.Decoder(_Tool)
TOOLS = msgspec.json.Decoder(list[_Tool])


class OpenAIChat:
    name = "openai_chat"

    def parse(self, body: bytes, path: str) -> LlmRequest:
        return deployed(parsed(body, _request), path)

    def tool(self, definition: JsonObject) -> Tool | None:
        return tool_from_openai("", definition)

    def rewrite(self, request: LlmRequest, kept: Collection[int]) -> bytes:
        return rewritten(request, kept, array=request.layout, dependent=DEPENDENT)

    def narrow(self, request: LlmRequest, kept: Collection[int]) -> bytes | None:
        tools = [request.tools[place] for place in kept]
        if request.layout != "tools" or any(TOOL.decode(tool.definition).type != "function" for tool in tools):
            return None
        entries = [{"type": "function", "function": {"name": tool.name}} for tool in tools]
        return narrowed(request, entries, nested=True)

    def observe(self, content_type: str) -> Observer:
        return observer(content_type, ChatAnswer())


def deployed(request: LlmRequest, path: str) -> LlmRequest:
    """The request to the deployment that the path names, if it does: Azure does not read the body's `model` then."""
    found = DEPLOYMENT.search(unquote(path))
    return request if found is None else replace(request, model=found[1])


def _request(text: bytes, fields: dict[str, Member]) -> LlmRequest:
    array = "functions" if given(text, fields, "tools") is None and "functions" in fields else "tools"
    said = objects_of(value_of(text, fields, "messages"))
    choice = value_of(text, fields, "tool_choice" if array == "tools" else "function_call")
    return LlmRequest(
        body=text,
        text=text,
        fields=fields,
        tools=_offered(text, given(text, fields, array)),
        turn=Turn(messages=tuple(map(_message, said))),
        choice=choice_of(choice),
        called=frozenset(name for message in said for name in _called(message)),
        model=text_of(value_of(text, fields, "model")),
        streams=value_of(text, fields, "stream") is True,
        layout=array,
    )


@remembering
def _offered(array: bytes) -> tuple[OfferedTool, ...]:
    spans = elements(array, Span(0, len(array)))
    read = TOOLS.decode(array)
    return tuple(
        offered(array, span, tool.called, tool, hosted=tool.type not in ("function", "custom"))
        for span, tool in zip(spans, read, strict=True)
    )


def _message(message: Mapping[str, Any]) -> Message:
    role = ROLES.get(text_of(message.get("role")), "system")
    content = message.get("content")
    if role == "tool":
        return Message(role=role, parts=result_of(content, text_of(message.get("name")) or None))
    calls = tuple(Part(kind="tool_call", tool=name) for name in _called(message))
    return Message(role=role, parts=(*parts_of(content), *calls))


def _called(message: Mapping[str, Any]) -> Iterable[str]:
    """The tools that a message calls."""
    calls = objects_of(message.get("tool_calls")) if message.get("tool_calls") else []
    if isinstance(message.get("function_call"), dict):
        calls = [*calls, object_of(message["function_call"])]
    return filter(None, map(name_in, calls))
