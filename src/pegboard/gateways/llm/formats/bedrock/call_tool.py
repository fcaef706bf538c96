"""Support for `call_tool` in Converse: specifications, cache points among them, and `toolUse` blocks."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from pegboard.gateways.llm.formats.bedrock.event_frames import EventFrames, Frame, event_frame
from pegboard.gateways.llm.formats.bedrock.request import CONFIG, ConverseTools
from pegboard.gateways.llm.formats.bedrock.tool_search import INDEX, blocks_of, call_frames
from pegboard.gateways.llm.formats.call_tool import UNFIT_WORDS, CallTool, Spot, Translator
from pegboard.gateways.llm.formats.call_translation import Reader, wrapped_object
from pegboard.gateways.llm.formats.edits import arguments_in, input_of, written
from pegboard.gateways.llm.formats.insertion import (
    Fields,
    before_part,
    behind_part,
    call_edits,
    member,
    objects,
    value,
)
from pegboard.gateways.llm.formats.json_reader import object_of, place_of, read, text_of
from pegboard.gateways.llm.formats.json_spans import Edit, Span, members
from pegboard.gateways.llm.formats.openai_chat.call_tool import schema
from pegboard.gateways.llm.formats.protocol import LlmRequest
from pegboard.gateways.llm.formats.tool_search import Document
from pegboard.model import Tool


class ConverseTranslator:
    def __init__(self, reader: Reader) -> None:
        self._reader = reader
        self._frames = EventFrames()
        self._held: dict[int, list[tuple[bytes, Document]]] = {}
        self._dropped = 0

    def feed(self, piece: bytes) -> bytes:
        out = b"".join(map(self._passed, self._frames.whole(piece)))
        return out + self._frames.left() if self._frames.is_lost else out

    def finish(self) -> bytes:
        return self._frames.left()

    def _passed(self, frame: Frame) -> bytes:
        said = frame.document
        if said is None or not frame.event.startswith("contentBlock"):
            return frame.raw
        index = place_of(said.get(INDEX, 0))
        if index is None:
            return frame.raw
        if object_of(object_of(said.get("start")).get("toolUse")).get("name") == self._reader.own:
            self._held[index] = []
        if index not in self._held:
            return event_frame(frame.event, said | {INDEX: index - self._dropped}) if self._dropped else frame.raw
        self._held[index].append((frame.raw, said))
        return self._call(index, self._held.pop(index)) if frame.event == "contentBlockStop" else b""

    def _call(self, index: int, held: list[tuple[bytes, Document]]) -> bytes:
        (_, start), *_ = held
        pieces = (text_of(object_of(object_of(said.get("delta")).get("toolUse")).get("input")) for _, said in held)
        native = self._reader.native("".join(pieces))
        if native is None:
            self._dropped += self._reader.drops
            return b"" if self._reader.drops else b"".join(raw for raw, _ in held)
        use = {**object_of(object_of(start["start"])["toolUse"]), "name": native.name}
        return b"".join(call_frames(index - self._dropped, use, native.arguments))


class ConverseCallTool:
    takes_any_text = False

    def described(self, tool: Tool) -> Tool:
        return tool

    def closed(self, request: LlmRequest) -> str:
        for tool in request.tools:
            if tool.stays or UNFIT_WORDS[0] not in tool.definition:
                continue
            if object_of(object_of(read(request.text[slice(*tool.span)])).get("toolSpec")).get("strict") is True:
                return f"{tool.name!r} is strict"
        return ""

    def offer(self, tool: CallTool) -> bytes:
        said = {"name": tool.name, "description": tool.description, "inputSchema": {"json": schema()}}
        return written({"toolSpec": said})

    def tools(self, request: LlmRequest, entry: bytes) -> list[Edit]:
        """The first cache point of the request stands behind the entry: one for everything that never changes."""
        layout: ConverseTools = request.layout
        points = [span for span, place in zip(layout.spans, layout.places, strict=True) if place is None]
        kept = [tool.definition for tool in request.tools if tool.stays]
        new = [*kept, entry, *(request.text[slice(*span)] for span in points[:1])]
        config = members(request.text, request.fields[CONFIG].value)
        return [Edit(*config["tools"].value, b"[" + b",".join(new) + b"]")]

    def calls(self, request: LlmRequest, own: str) -> list[Edit]:
        return [
            edit
            for _, blocks in _contents(request)
            for _, block in blocks
            if (use := member(request, block, "toolUse")) is not None
            for edit in _use_edits(request, use, own)
        ]

    def spots(self, request: LlmRequest) -> Sequence[Spot]:
        spots = (_spot(request, blocks) for role, blocks in _contents(request) if role == "user")
        return [spot for spot in spots if spot is not None]

    def translated(self, answer: Document, reader: Reader) -> Document:
        said = blocks_of(answer)
        content = [native for block in said if (native := _native(block, reader)) is not None]
        if content == said:
            return answer
        output = object_of(answer.get("output"))
        message = {**object_of(output.get("message")), "content": content}
        return answer | {"output": {**output, "message": message}}

    def translator(self, reader: Reader) -> Translator:
        return ConverseTranslator(reader)


def _contents(request: LlmRequest) -> Iterator[tuple[str, list[tuple[Span, Fields]]]]:
    """The role and blocks of each message."""
    for _, message in objects(request, member(request, request.fields, "messages")):
        blocks = list(objects(request, member(request, message, "content")))
        yield text_of(value(request, message, "role")), blocks


def _use_edits(request: LlmRequest, use: Span, own: str) -> Iterator[Edit]:
    called = members(request.text, use)
    yield from call_edits(request, called, "input", own=own, wrap=wrapped_object, empty=b"{}")


def _spot(request: LlmRequest, blocks: list[tuple[Span, Fields]]) -> Spot | None:
    """Results come before everything else."""
    first, speaks = None, False
    for span, block in blocks:
        if "toolResult" in block:
            first = None
        elif text_of(value(request, block, "text")).strip():
            first, speaks = first or span, True
    if not speaks:
        return None
    return before_part(first, _text) if first else behind_part(blocks[-1][0], _text)


def _text(text: str) -> Document:
    return {"text": text}


def _native(block: Mapping[str, Any], reader: Reader) -> Mapping[str, Any] | None:
    use = object_of(block.get("toolUse"))
    if "toolUse" not in block or use.get("name") != reader.own:
        return block
    native = reader.native(arguments_in(use.get("input")))
    if native is None:
        return None if reader.drops else block
    return {**block, "toolUse": {**use, "name": native.name, "input": input_of(native.arguments)}}
