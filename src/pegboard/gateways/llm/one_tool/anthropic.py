"""Messages: flat tools, `tool_use` blocks, and results that come before what the user says."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from pegboard.gateways.llm.codec import Request
from pegboard.gateways.llm.one_tool.anthropic_stream import MessagesTranslator
from pegboard.gateways.llm.one_tool.calls import Reader, wrapped_object
from pegboard.gateways.llm.one_tool.openai_chat import TEXTS, schema, text_part, with_breakpoint
from pegboard.gateways.llm.one_tool.places import array_edits, begins, call_edits, member, objects, spot_in, value
from pegboard.gateways.llm.one_tool.strictness import unfit
from pegboard.gateways.llm.one_tool.wire import OneTool, Spot, Translator
from pegboard.gateways.llm.reading import objects_of
from pegboard.gateways.llm.spans import Edit
from pegboard.gateways.llm.way_back.edits import loaded
from pegboard.gateways.llm.way_back.edits import written as compact
from pegboard.gateways.llm.way_back.wire import Document

CLEARS_BY_NAME = b'"exclude_tools"'
"""Part of a request that has results cleared from its history, but for those of some tools."""


class MessagesDialect:
    takes_any_text = False

    def closed(self, request: Request) -> str:
        return "it clears results by the names of tools" if CLEARS_BY_NAME in request.text else unfit(request)

    def offer(self, tool: OneTool) -> bytes:
        entry = {"name": tool.name, "description": tool.description, "input_schema": schema()}
        return with_breakpoint(entry, tool.breakpoint)

    def tools(self, request: Request, entry: bytes) -> list[Edit]:
        return array_edits(request, entry)

    def calls(self, request: Request, own: str) -> list[Edit]:
        edits: list[Edit] = []
        for _, message in objects(request, member(request, request.fields, "messages")):
            content = member(request, message, "content")
            for _, block in objects(request, content) if content and begins(request, content, b"[") else ():
                if value(request, block, "type") == "tool_use":
                    edits += call_edits(request, block, "input", own=own, wrap=wrapped_object, empty=b"{}")
        return edits

    def spots(self, request: Request) -> Sequence[Spot]:
        messages = objects(request, member(request, request.fields, "messages"))
        said = (fields for _, fields in messages if value(request, fields, "role") == "user")
        spots = (spot_in(request, member(request, each, "content"), text_part, TEXTS, "tool_result") for each in said)
        return [spot for spot in spots if spot is not None]

    def translated(self, answer: Document, reader: Reader) -> Document:
        said = answer.get("content")
        if not isinstance(said, list):
            return answer
        content = [native for block in objects_of(said) if (native := _block(block, reader)) is not None]
        return answer if content == said else answer | {"content": content}

    def translator(self, reader: Reader) -> Translator:
        return MessagesTranslator(reader)


def _block(block: Mapping[str, Any], reader: Reader) -> Mapping[str, Any] | None:
    if block.get("type") != "tool_use" or block.get("name") != reader.own:
        return block
    native = reader.native(compact(block.get("input")).decode())
    if native is None:
        return None if reader.drops else block
    return {**block, "name": native.name, "input": loaded(native.arguments) or {}}
