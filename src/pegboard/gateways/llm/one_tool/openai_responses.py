"""Responses: flat functions, calls that are items of their own, and answers that repeat the request's tools."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from pegboard.gateways.llm.codec import Request
from pegboard.gateways.llm.one_tool.calls import Reader, wrapped_text
from pegboard.gateways.llm.one_tool.openai_chat import TEXTS, schema, with_breakpoint
from pegboard.gateways.llm.one_tool.places import (
    array_edits,
    begins,
    call_edits,
    in_string,
    member,
    objects,
    spot_in,
    value,
)
from pegboard.gateways.llm.one_tool.responses_stream import ResponsesTranslator
from pegboard.gateways.llm.one_tool.strictness import unfit
from pegboard.gateways.llm.one_tool.wire import OneTool, Spot, Translator
from pegboard.gateways.llm.reading import objects_of, text_of
from pegboard.gateways.llm.spans import Edit
from pegboard.gateways.llm.way_back.wire import Document

CONTINUING = ("previous_response_id", "conversation")


class ResponsesDialect:
    takes_any_text = True

    def closed(self, request: Request) -> str:
        if any(member(request, request.fields, name) for name in CONTINUING):
            return "the provider keeps the conversation"
        return unfit(request)

    def offer(self, tool: OneTool) -> bytes:
        function = {"type": "function", "name": tool.name, "description": tool.description, "parameters": schema()}
        return with_breakpoint(function | {"strict": False}, tool.breakpoint)

    def tools(self, request: Request, entry: bytes) -> list[Edit]:
        return array_edits(request, entry)

    def calls(self, request: Request, own: str) -> list[Edit]:
        said = member(request, request.fields, "input")
        items = (fields for _, fields in objects(request, said)) if said and begins(request, said, b"[") else ()
        return [
            edit
            for item in items
            if value(request, item, "type") == "function_call" and not value(request, item, "namespace")
            for edit in call_edits(request, item, "arguments", own=own, wrap=wrapped_text, empty=b'""')
        ]

    def spots(self, request: Request) -> Sequence[Spot]:
        said = member(request, request.fields, "input")
        if said is None:
            return []
        if begins(request, said, b'"'):
            return [in_string(said)] if text_of(value(request, request.fields, "input")).strip() else []
        items = (fields for _, fields in objects(request, said))
        users = (item for item in items if value(request, item, "role") == "user" and _is_message(request, item))
        spots = (spot_in(request, member(request, each, "content"), _input_text, TEXTS, "") for each in users)
        return [spot for spot in spots if spot is not None]

    def translated(self, answer: Document, reader: Reader) -> Document:
        said = answer.get("output")
        output = [native for item in objects_of(said or []) if (native := native_item(item, reader)) is not None]
        found = answer if output == said or said is None else answer | {"output": output}
        return with_tools(found, reader)

    def translator(self, reader: Reader) -> Translator:
        return ResponsesTranslator(reader, self.translated)


def native_item(item: Mapping[str, Any], reader: Reader) -> Mapping[str, Any] | None:
    """An item as the client gets it; None where it is dropped."""
    if item.get("type") != "function_call" or item.get("name") != reader.own or item.get("namespace"):
        return item
    native = reader.native(text_of(item.get("arguments")))
    if native is None:
        return None if reader.drops else item
    return {**item, "name": native.name, "arguments": native.arguments}


def with_tools(answer: Document, reader: Reader) -> Document:
    """The answer with the tools of the client's request where it repeats ours."""
    repeated = answer.get("tools")
    if not isinstance(repeated, list) or all(tool.get("name") != reader.own for tool in objects_of(repeated)):
        return answer
    return answer | {"tools": json.loads(reader.offered)}


def _is_message(request: Request, item: Mapping[str, Any]) -> bool:
    return "type" not in item or value(request, item, "type") == "message"


def _input_text(text: str) -> Document:
    return {"type": "input_text", "text": text}
