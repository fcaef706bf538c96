"""Gemini: groups of declarations, and calls and results that are parts, in camel or snake case.

It takes no object without properties, and models fill one without names badly: so `call_tool` takes JSON as a string.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from pegboard.gateways.llm.codec import Request
from pegboard.gateways.llm.codecs.gemini import Group, either
from pegboard.gateways.llm.one_tool.calls import Reader, wrapped_in_text
from pegboard.gateways.llm.one_tool.gemini_stream import ContentsTranslator, native_parts
from pegboard.gateways.llm.one_tool.places import (
    Fields,
    before_part,
    behind_part,
    call_edits,
    member,
    objects,
    staying,
    value,
)
from pegboard.gateways.llm.one_tool.wire import OneTool, Spot, Translator
from pegboard.gateways.llm.reading import object_of, objects_of, text_of
from pegboard.gateways.llm.spans import Edit, Span, cut, cut_members, members
from pegboard.gateways.llm.way_back.edits import written
from pegboard.gateways.llm.way_back.gemini_parts import parts_in
from pegboard.gateways.llm.way_back.wire import Document

STREAMED_ARGUMENTS = ("streamFunctionCallArguments", "stream_function_call_arguments")


class ContentsDialect:
    takes_any_text = False

    def closed(self, request: Request) -> str:
        if any(f'"{name}"'.encode() in request.text for name in STREAMED_ARGUMENTS):
            return "the arguments of its calls are streamed"
        return ""

    def offer(self, tool: OneTool) -> bytes:
        properties = {
            "name": {"type": "STRING", "description": "The tool's name"},
            "arguments": {"type": "STRING", "description": "The tool's own arguments, as a JSON object"},
        }
        schema = {"type": "OBJECT", "properties": properties, "required": ["name", "arguments"]}
        return written({"name": tool.name, "description": tool.description, "parameters": schema})

    def tools(self, request: Request, entry: bytes) -> list[Edit]:
        """In the place of the first declarations, with those that stay: a group may hold more than these."""
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

    def calls(self, request: Request, own: str) -> list[Edit]:
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

    def spots(self, request: Request) -> Sequence[Spot]:
        spots = (_spot(request, parts) for role, parts in _contents(request) if role != "model")
        return [spot for spot in spots if spot is not None]

    def translated(self, answer: Document, reader: Reader) -> Document:
        candidates = [_candidate(each, reader) for each in objects_of(answer.get("candidates") or [])]
        return answer if candidates == answer.get("candidates", []) else answer | {"candidates": candidates}

    def translator(self, reader: Reader) -> Translator:
        return ContentsTranslator(reader, self.translated)


def _contents(request: Request) -> Iterator[tuple[str, list[tuple[Span, Fields]]]]:
    """Role and parts of each content."""
    for _, content in objects(request, member(request, request.fields, "contents")):
        parts = list(objects(request, member(request, content, "parts")))
        yield text_of(value(request, content, "role")), parts


def _spot(request: Request, parts: list[tuple[Span, Fields]]) -> Spot | None:
    first, speaks = None, False
    for span, part in parts:
        if either(part, "functionResponse") in part:
            first = None
        elif _says(request, part):
            first, speaks = first or span, True
    if not speaks:
        return None
    return before_part(first, _text_part) if first else behind_part(parts[-1][0], _text_part)


def _says(request: Request, part: Fields) -> bool:
    return bool(text_of(value(request, part, "text")).strip()) and not value(request, part, "thought")


def _text_part(text: str) -> Document:
    return {"text": text}


def _candidate(candidate: Mapping[str, Any], reader: Reader) -> Mapping[str, Any]:
    said = parts_in(candidate)
    parts = native_parts(said, reader)
    if parts == said:
        return candidate
    return {**candidate, "content": {**object_of(candidate.get("content")), "parts": parts or [{"text": ""}]}}
