"""Amazon Bedrock Converse: `POST /model/MODEL/converse` and `/converse-stream` (Bedrock Runtime API reference,
Converse, ToolConfiguration, Tool, read 2026-11-23).

Tools are in `toolConfig.tools`, which needs at least one; among them are cache points and tools of the system. A
request whose messages use tools needs a `toolConfig`.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any
from urllib.parse import unquote

from pegboard.catalog.ingest.provider_tools import tool_from_bedrock
from pegboard.gateways.llm.formats.bedrock.response import bedrock_observer
from pegboard.gateways.llm.formats.json_reader import object_of, objects_of, read, text_of, value_of
from pegboard.gateways.llm.formats.json_spans import Member, Span, cut, cut_members, elements, members, splice
from pegboard.gateways.llm.formats.protocol import LlmRequest, Observer, OfferedTool, ToolChoice, parsed
from pegboard.gateways.llm.formats.tool_arrays import given, offered_plainly
from pegboard.model import JsonObject, Message, Part, PartKind, Role, Tool, Turn

PATH = re.compile(r"/model/([^/]+)/converse(-stream)?/?$", re.IGNORECASE)
CONFIG = "toolConfig"
ROLES: Mapping[str, Role] = {"user": "user", "assistant": "assistant"}
KINDS: Mapping[str, PartKind] = {"text": "text", "image": "image", "audio": "audio"}
"""Blocks by their one member; any other, such as `document`, counts as a file."""
SILENT = frozenset({"toolUse", "toolResult", "cachePoint", "reasoningContent", "guardContent", "citationsContent"})


@dataclass(frozen=True, slots=True, kw_only=True)
class ConverseTools:
    """The entries of `toolConfig.tools`, and for each the place of its tool; None for a cache point."""

    spans: tuple[Span, ...] = ()
    places: tuple[int | None, ...] = ()


class BedrockConverse:
    name = "bedrock"

    def parse(self, body: bytes, path: str) -> LlmRequest:
        found = PATH.search(path)
        model = unquote(found[1]) if found else ""
        streams = bool(found and found[2])
        return replace(parsed(body, _request), model=model, streams=streams)

    def tool(self, definition: JsonObject) -> Tool | None:
        return tool_from_bedrock("", definition)

    def rewrite(self, request: LlmRequest, kept: Collection[int]) -> bytes:
        if len(kept) == len(request.tools):
            return request.body
        if not kept:
            return splice(request.body, cut_members(request.fields, [CONFIG]))
        layout: ConverseTools = request.layout
        return splice(request.body, cut(layout.spans, list(_staying(layout.places, frozenset(kept)))))

    def narrow(self, request: LlmRequest, kept: Collection[int]) -> bytes | None:
        return None

    def defer(self, request: LlmRequest, loaded: Collection[int], kept: Collection[int]) -> bytes | None:
        return None

    def observe(self, content_type: str) -> Observer:
        return bedrock_observer(content_type)


def _staying(places: Sequence[int | None], kept: frozenset[int]) -> Iterator[bool]:
    """Which entries stay: a cache point only directly behind a tool, as one without a prefix is refused (P20)."""
    behind_tool = False
    for place in places:
        stays = behind_tool if place is None else place in kept
        behind_tool = (behind_tool or stays) if place is not None else (behind_tool and not stays)
        yield stays


def _request(text: bytes, fields: dict[str, Member]) -> LlmRequest:
    tools, layout, choice = _configured(text, given(text, fields, CONFIG))
    system = objects_of(value_of(text, fields, "system") or [])
    said = objects_of(value_of(text, fields, "messages") or [])
    instructions = [Message(role="system", parts=tuple(_parts(system)))] if system else []
    blocks = [block for message in said for block in objects_of(message.get("content") or [])]
    return LlmRequest(
        body=text,
        text=text,
        fields=fields,
        tools=tools,
        turn=Turn(messages=(*instructions, *(each for message in said for each in _messages(message)))),
        choice=choice,
        called=frozenset(filter(None, (text_of(object_of(block.get("toolUse")).get("name")) for block in blocks))),
        layout=layout,
    )


def _configured(text: bytes, config: Span | None) -> tuple[tuple[OfferedTool, ...], ConverseTools, ToolChoice]:
    """The tools, their layout, and the choice."""
    if config is None:
        return (), ConverseTools(), ToolChoice()
    inner = members(text, config)
    array = given(text, inner, "tools")
    spans = tuple(elements(text, array)) if array else ()
    tools: list[OfferedTool] = []
    places: list[int | None] = []
    for span in spans:
        entry = object_of(read(text[slice(*span)]))
        if "cachePoint" in entry:
            places.append(None)
            continue
        places.append(len(tools))
        name = text_of(object_of(entry.get("toolSpec")).get("name"))
        tools.append(offered_plainly(text, span, name, hosted="toolSpec" not in entry))
    choice = _choice(object_of(value_of(text, inner, "toolChoice")))
    return tuple(tools), ConverseTools(spans=spans, places=tuple(places)), choice


def _choice(choice: Mapping[str, Any]) -> ToolChoice:
    """`{"auto": {}}`, `{"any": {}}` or `{"tool": {"name": …}}`."""
    name = text_of(object_of(choice.get("tool")).get("name"))
    if name:
        return ToolChoice(mode="required", names=frozenset([name]), forced=True)
    return ToolChoice(mode="required" if "any" in choice else "auto")


def _messages(message: Mapping[str, Any]) -> Iterator[Message]:
    """Splits messages that contain tool results: results are not what the user said (P1)."""
    blocks = objects_of(message.get("content") or [])
    results = [object_of(block["toolResult"]) for block in blocks if "toolResult" in block]
    if results:
        parts = (part for result in results for part in _parts(objects_of(result.get("content") or [])))
        yield Message(role="tool", parts=tuple(Part(kind="tool_result", text=part.text) for part in parts))
    calls = (text_of(object_of(block["toolUse"]).get("name")) for block in blocks if "toolUse" in block)
    said = (*_parts(blocks), *(Part(kind="tool_call", tool=name) for name in calls))
    if said or not results:
        yield Message(role=ROLES.get(text_of(message.get("role")), "system"), parts=said)


def _parts(blocks: Sequence[Mapping[str, Any]]) -> Iterator[Part]:
    for block in blocks:
        kind = next((name for name in block if name not in SILENT), None)
        if kind is not None:
            yield Part(kind=KINDS.get(kind, "file"), text=text_of(block[kind]) if kind == "text" else "")
