"""Support for `call_tool` in Gemini: groups of declarations; calls and results are parts, in camel or snake case.

Gemini rejects objects without properties, and models fill unnamed properties poorly: so `call_tool` takes JSON in a
string.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from pegboard.gateways.llm.formats.call_tool import CallTool, Spot, Translator
from pegboard.gateways.llm.formats.call_translation import Reader, wrapped_in_text
from pegboard.gateways.llm.formats.edits import input_of, written
from pegboard.gateways.llm.formats.gemini.parts import (
    Part,
    call_in,
    json_schema,
    parts_in,
    still_signed,
    streams_arguments,
)
from pegboard.gateways.llm.formats.gemini.request import Group, either
from pegboard.gateways.llm.formats.insertion import (
    Fields,
    before_part,
    behind_part,
    call_edits,
    member,
    objects,
    staying,
    value,
)
from pegboard.gateways.llm.formats.json_reader import object_of, objects_of, text_of
from pegboard.gateways.llm.formats.json_spans import Edit, Span, cut, cut_members, members
from pegboard.gateways.llm.formats.protocol import LlmRequest
from pegboard.gateways.llm.formats.streams import EventTranslator
from pegboard.gateways.llm.formats.tool_search import Document
from pegboard.model import Tool


class ContentsTranslator(EventTranslator):
    """Translates every event, each of which is an answer, with ``translated``."""

    def __init__(self, reader: Reader, translated: Callable[[Document, Reader], Document]) -> None:
        super().__init__()
        self._reader = reader
        self._translated = translated

    def _passed(self, raw: bytes, event: Document | None) -> bytes:
        native = None if event is None else self._translated(event, self._reader)
        return raw if native is None or native is event else b"data: " + written(native) + b"\r\n\r\n"


class ContentsCallTool:
    takes_any_text = False

    def described(self, tool: Tool) -> Tool:
        return replace(tool, input_schema=json_schema(tool.input_schema))

    def closed(self, request: LlmRequest) -> str:
        return "the arguments of its calls are streamed" if streams_arguments(request.text) else ""

    def offer(self, tool: CallTool) -> bytes:
        properties = {
            "name": {"type": "STRING", "description": "The tool's name"},
            "arguments": {"type": "STRING", "description": "The tool's own arguments, as a JSON object"},
        }
        schema = {"type": "OBJECT", "properties": properties, "required": ["name", "arguments"]}
        return written({"name": tool.name, "description": tool.description, "parameters": schema})

    def tools(self, request: LlmRequest, entry: bytes) -> list[Edit]:
        """In place of the first declarations, after those that stay: a group may contain more than declarations."""
        groups: list[Group] = request.layout
        first = next(group for group in groups if group.declarations)
        kept = [tool.definition for tool in request.tools if tool.protected]
        keep = [group is first or not group.declarations or len(group.members) > 1 for group in groups]
        edits = cut([group.span for group in groups], keep)
        for group, stays in zip(groups, keep, strict=True):
            if group is first:
                edits.append(Edit(*group.members[group.key].value, b"[" + b",".join([*kept, entry]) + b"]"))
            elif stays and group.declarations:
                edits += cut_members(group.members, [group.key])
        return edits

    def calls(self, request: LlmRequest, own: str) -> list[Edit]:
        edits: list[Edit] = []
        for part in (part for _, parts in _contents(request) for _, part in parts):
            if (call := member(request, part, either(part, "functionCall"))) is not None:
                called = members(request.text, call)
                edits += call_edits(request, called, "args", own=own, wrap=wrapped_in_text, empty=b"{}")
            elif (answer := member(request, part, either(part, "functionResponse"))) is not None:
                answered = members(request.text, answer)
                renamed = "name" in answered and value(request, answered, "name") not in staying(request)
                edits += [Edit(*answered["name"].value, written(own))] if renamed else []
        return edits

    def spots(self, request: LlmRequest) -> Sequence[Spot]:
        spots = (_spot(request, parts) for role, parts in _contents(request) if role != "model")
        return [spot for spot in spots if spot is not None]

    def translated(self, answer: Document, reader: Reader) -> Document:
        candidates = [_candidate(each, reader) for each in objects_of(answer.get("candidates") or [])]
        return answer if candidates == answer.get("candidates", []) else answer | {"candidates": candidates}

    def translator(self, reader: Reader) -> Translator:
        return ContentsTranslator(reader, self.translated)


def _contents(request: LlmRequest) -> Iterator[tuple[str, list[tuple[Span, Fields]]]]:
    """The role and parts of each content."""
    for _, content in objects(request, member(request, request.fields, "contents")):
        parts = list(objects(request, member(request, content, "parts")))
        yield text_of(value(request, content, "role")), parts


def _spot(request: LlmRequest, parts: list[tuple[Span, Fields]]) -> Spot | None:
    first, speaks = None, False
    for span, part in parts:
        if either(part, "functionResponse") in part:
            first = None
        elif _says(request, part):
            first, speaks = first or span, True
    if not speaks:
        return None
    return before_part(first, _text_part) if first else behind_part(parts[-1][0], _text_part)


def _says(request: LlmRequest, part: Fields) -> bool:
    return bool(text_of(value(request, part, "text")).strip()) and not value(request, part, "thought")


def _text_part(text: str) -> Document:
    return {"text": text}


def _candidate(candidate: Mapping[str, Any], reader: Reader) -> Mapping[str, Any]:
    said = parts_in(candidate)
    parts = native_parts(said, reader)
    if parts == said:
        return candidate
    return {**candidate, "content": {**object_of(candidate.get("content")), "parts": parts or [{"text": ""}]}}


def native_parts(parts: Sequence[Part], reader: Reader) -> list[Part]:
    """The parts as the client gets them: a call keeps its id and its thought signature, or a placeholder for
    that of one before it."""
    return still_signed(parts, [native for part in parts if (native := _native(part, reader)) is not None])


def _native(part: Part, reader: Reader) -> Part | None:
    call = call_in(part)
    if call is None or call.name != reader.own:
        return part
    native = reader.native(call.arguments)
    if native is None:
        return None if reader.drops else part
    said = {**object_of(part["functionCall"]), "name": native.name, "args": input_of(native.arguments)}
    return {**part, "functionCall": said}
