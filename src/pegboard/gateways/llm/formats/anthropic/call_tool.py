"""Support for `call_tool` in Messages: flat tools, `tool_use` blocks, and results that precede the user's text."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from pegboard.gateways.llm.formats.anthropic.tool_search import renumbered
from pegboard.gateways.llm.formats.call_tool import CallTool, Spot, Translator, unfit
from pegboard.gateways.llm.formats.call_translation import Reader, wrapped_object
from pegboard.gateways.llm.formats.edits import arguments_in, input_of, written
from pegboard.gateways.llm.formats.insertion import array_edits, begins, call_edits, member, objects, spot_in, value
from pegboard.gateways.llm.formats.json_reader import object_of, objects_of, place_of, text_of
from pegboard.gateways.llm.formats.json_spans import Edit
from pegboard.gateways.llm.formats.openai_chat.call_tool import TEXTS, schema, text_part, with_breakpoint
from pegboard.gateways.llm.formats.protocol import LlmRequest
from pegboard.gateways.llm.formats.streams import EventTranslator, named_event
from pegboard.gateways.llm.formats.tool_search import Document
from pegboard.model import Tool

CLEARS_BY_NAME = b'"exclude_tools"'
"""Occurs in requests that clear tool results from their history, except those of some tools."""


class MessagesTranslator(EventTranslator):
    def __init__(self, reader: Reader) -> None:
        super().__init__()
        self._reader = reader
        self._held: dict[int, list[tuple[bytes, Document]]] = {}
        self._dropped = 0

    def _passed(self, raw: bytes, event: Document | None) -> bytes:
        kind = text_of(event.get("type")) if event else ""
        if event is None or not kind.startswith("content_block"):
            return raw
        index = place_of(event.get("index"))
        if index is None:
            return raw
        if kind == "content_block_start":
            block = object_of(event.get("content_block"))
            if block.get("type") == "tool_use" and block.get("name") == self._reader.own:
                self._held[index] = []
        if index not in self._held:
            return renumbered(raw, event, index - self._dropped)
        self._held[index].append((raw, event))
        return self._block(self._held.pop(index)) if kind == "content_block_stop" else b""

    def _block(self, held: list[tuple[bytes, Document]]) -> bytes:
        (_, start), *_ = held
        block = object_of(start.get("content_block"))
        pieces = [text_of(object_of(event.get("delta")).get("partial_json")) for _, event in held]
        native = self._reader.native("".join(pieces) or written(block.get("input")).decode())
        if native is None:
            self._dropped += self._reader.drops
            return b"" if self._reader.drops else b"".join(raw for raw, _ in held)
        at = {"index": start["index"] - self._dropped}
        delta = {"type": "input_json_delta", "partial_json": native.arguments}
        return b"".join(
            [
                named_event(start | at | {"content_block": {**block, "name": native.name, "input": {}}}),
                named_event({"type": "content_block_delta", **at, "delta": delta}),
                renumbered(*held[-1], at["index"]),
            ]
        )


class MessagesCallTool:
    takes_any_text = False

    def described(self, tool: Tool) -> Tool:
        return tool

    def closed(self, request: LlmRequest) -> str:
        return "it clears results by the names of tools" if CLEARS_BY_NAME in request.text else unfit(request)

    def offer(self, tool: CallTool) -> bytes:
        entry = {"name": tool.name, "description": tool.description, "input_schema": schema()}
        return with_breakpoint(entry, tool.breakpoint)

    def tools(self, request: LlmRequest, entry: bytes) -> list[Edit]:
        return array_edits(request, entry)

    def calls(self, request: LlmRequest, own: str) -> list[Edit]:
        edits: list[Edit] = []
        for _, message in objects(request, member(request, request.fields, "messages")):
            content = member(request, message, "content")
            for _, block in objects(request, content) if content and begins(request, content, b"[") else ():
                if value(request, block, "type") == "tool_use":
                    edits += call_edits(request, block, "input", own=own, wrap=wrapped_object, empty=b"{}")
        return edits

    def spots(self, request: LlmRequest) -> Sequence[Spot]:
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
    native = reader.native(arguments_in(block.get("input")))
    if native is None:
        return None if reader.drops else block
    return {**block, "name": native.name, "input": input_of(native.arguments)}
