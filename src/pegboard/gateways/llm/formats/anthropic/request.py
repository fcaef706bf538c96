"""Anthropic Messages, and `count_tokens`, which must count what a message would be billed."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any
from urllib.parse import unquote

import msgspec

from pegboard.catalog.ingest.provider_tools import tool_from_anthropic
from pegboard.gateways.llm.formats.anthropic.defer_loading import dangling_edits, is_search, search_edits
from pegboard.gateways.llm.formats.anthropic.response import MessagesAnswer
from pegboard.gateways.llm.formats.contents import parts_of, result_of
from pegboard.gateways.llm.formats.json_reader import object_of, objects_of, text_of, value_of
from pegboard.gateways.llm.formats.json_spans import Member, Span, elements
from pegboard.gateways.llm.formats.protocol import LlmRequest, Observer, OfferedTool, parsed
from pegboard.gateways.llm.formats.streams import observer
from pegboard.gateways.llm.formats.tool_arrays import (
    CachedTool,
    choice_of,
    given,
    offered,
    remembering,
    rewritten,
)
from pegboard.model import JsonObject, Message, Part, Role, Tool, Turn

ROLES: Mapping[str, Role] = {"user": "user", "assistant": "assistant"}
"""Other roles (`system`) are instructions, wherever they occur: Claude Code sends them in mid-conversation."""
DEPENDENT = ("tool_choice",)
MODEL = re.compile(r"/publishers/anthropic/models/([^/:]+):|/model/([^/]+)/invoke/?$", re.IGNORECASE)
"""Vertex AI and Bedrock name the model in the path."""
COUNTING = "count-tokens"
"""What Vertex AI has in its place where tokens are counted."""


class _Tool(CachedTool):
    name: str | None = None
    type: str | None = None


TOOLS = msgspec.json.Decoder(list[_Tool])


class AnthropicMessages:
    name = "anthropic"

    def parse(self, body: bytes, path: str) -> LlmRequest:
        request = parsed(body, _request)
        found = MODEL.search(path)
        model = unquote(found[1] or found[2]) if found else COUNTING
        return request if model == COUNTING else replace(request, model=model)

    def tool(self, definition: JsonObject) -> Tool | None:
        return tool_from_anthropic("", {key: value for key, value in definition.items() if value is not None})

    def rewrite(self, request: LlmRequest, kept: Collection[int]) -> bytes:
        mended = [*dangling_edits(request), *search_edits(request, kept)]
        return rewritten(request, kept, array="tools", dependent=DEPENDENT, mended=mended)

    def narrow(self, request: LlmRequest, kept: Collection[int]) -> bytes | None:
        return None

    def observe(self, content_type: str) -> Observer:
        return observer(content_type, MessagesAnswer())


def _request(text: bytes, fields: dict[str, Member]) -> LlmRequest:
    system, said = value_of(text, fields, "system"), objects_of(value_of(text, fields, "messages"))
    messages = [Message(role="system", parts=parts_of(system))] if system else []
    blocks = [block for message in said for block in _blocks(message)]
    return LlmRequest(
        body=text,
        text=text,
        fields=fields,
        tools=_offered(text, given(text, fields, "tools")),
        turn=Turn(messages=(*messages, *(each for message in said for each in _messages(message)))),
        choice=choice_of(value_of(text, fields, "tool_choice")),
        called=frozenset(text_of(block.get("name")) for block in blocks if block.get("type") == "tool_use") - {""},
        referenced=frozenset(_referenced(blocks)),
        native=frozenset(_native(blocks)) - {""},
        searched=frozenset(_searched(blocks)),
        model=text_of(value_of(text, fields, "model")),
        streams=value_of(text, fields, "stream") is True,
    )


@remembering
def _offered(array: bytes) -> tuple[OfferedTool, ...]:
    spans = elements(array, Span(0, len(array)))
    read = TOOLS.decode(array)
    return tuple(
        offered(
            array,
            span,
            tool.name or "",
            tool,
            hosted=tool.type not in (None, "custom"),
            searches=is_search(tool.type or ""),
        )
        for span, tool in zip(spans, read, strict=True)
    )


def _blocks(message: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    content = message.get("content")
    return objects_of(content) if isinstance(content, list) else []


def _messages(message: Mapping[str, Any]) -> Iterator[Message]:
    """Splits user messages that contain tool results: results are not what the user said (P1)."""
    content, blocks = message.get("content"), _blocks(message)
    results = tuple(part for block in blocks if _is_result(block) for part in result_of(block.get("content")))
    if any(map(_is_result, blocks)):
        yield Message(role="tool", parts=results)
    calls = (block for block in blocks if block.get("type") in ("tool_use", "server_tool_use"))
    parts = (
        *parts_of([block for block in blocks if not _is_call_or_result(block)] if blocks else content),
        *(Part(kind="tool_call", tool=text_of(block.get("name"))) for block in calls),
    )
    if parts or not results:
        yield Message(role=ROLES.get(text_of(message.get("role")), "system"), parts=parts)


def _is_result(block: Mapping[str, Any]) -> bool:
    return text_of(block.get("type")).endswith("tool_result")


def _is_call_or_result(block: Mapping[str, Any]) -> bool:
    return _is_result(block) or text_of(block.get("type")).endswith(("tool_use", "thinking"))


def _referenced(blocks: Iterable[Mapping[str, Any]]) -> Iterator[str]:
    """The tools that search results in the history refer to: without one of them every later request fails (P21)."""
    for block in blocks:
        if not _is_result(block):
            continue
        content = block.get("content")
        found = object_of(content).get("tool_references", content)
        for each in objects_of(found) if found else []:
            if each.get("type") == "tool_reference":
                yield text_of(each.get("tool_name"))


def _native(blocks: Iterable[Mapping[str, Any]]) -> Iterator[str]:
    """The tools that were called before any search had found them: they were in the prompt."""
    found: set[str] = set()
    for block in blocks:
        found.update(_referenced([block]))
        name = text_of(block.get("name"))
        if block.get("type") == "tool_use" and name not in found:
            yield name


def _searched(blocks: Iterable[Mapping[str, Any]]) -> Iterator[str]:
    names = (text_of(block.get("name")) for block in blocks if block.get("type") == "server_tool_use")
    return filter(is_search, names)
