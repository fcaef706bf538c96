"""Support for `call_tool` in Chat Completions: functions, call arguments as a string, content as a string or parts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from pegboard.gateways.llm.formats.call_tool import CallTool, Spot, Translator, unfit
from pegboard.gateways.llm.formats.call_translation import Reader, wrapped_text
from pegboard.gateways.llm.formats.edits import loaded, written
from pegboard.gateways.llm.formats.insertion import (
    Fields,
    array_edits,
    call_edits,
    member,
    objects,
    spot_in,
    staying,
    value,
)
from pegboard.gateways.llm.formats.json_reader import object_of, objects_of, place_of, text_of
from pegboard.gateways.llm.formats.json_spans import Edit, members
from pegboard.gateways.llm.formats.openai_chat.tool_search import (
    DONE,
    EXTRA,
    StreamedCall,
    begins_another,
    placeholder,
    still_signed,
)
from pegboard.gateways.llm.formats.protocol import LlmRequest
from pegboard.gateways.llm.formats.streams import Frames
from pegboard.gateways.llm.formats.tool_search import Document
from pegboard.model import Tool

TEXTS = ("text", "input_text", "output_text")


class ChatTranslator:
    def __init__(self, reader: Reader) -> None:
        self._reader = reader
        self._frames = Frames()
        self._known: set[object] = set()
        self._ids: dict[object, str] = {}
        self._held: dict[object, StreamedCall] = {}
        self._last: object = None
        self._dropped = 0
        self._unsigned: Mapping[str, Any] = {}
        """A placeholder for the signature of a call that was dropped, for the next call."""
        self._chunk: Document = {}

    def feed(self, piece: bytes) -> bytes:
        return b"".join(self._passed(raw, data) for raw, data in self._frames.feed(piece))

    def finish(self) -> bytes:
        left = b"".join(self._passed(raw, data) for raw, data in self._frames.finish())
        return left + self._sent(list(self._released()))

    def _passed(self, raw: bytes, data: bytes) -> bytes:
        chunk = loaded(data)
        choices = objects_of(chunk.get("choices") or []) if chunk else []
        if data == DONE:
            return self._sent(list(self._released())) + raw
        if chunk is None or not choices:
            return raw
        self._chunk = chunk
        delta = object_of(choices[0].get("delta"))
        said = objects_of(delta.get("tool_calls") or [])
        pieces = [each for piece in said for each in self._piece(piece)]
        before = b""
        if choices[0].get("finish_reason") is not None and said:
            pieces += self._released()
        elif choices[0].get("finish_reason") is not None:
            before = self._sent(list(self._released()))
        if pieces != said:
            without = {name: value for name, value in delta.items() if name != "tool_calls"}
            delta = without | ({"tool_calls": pieces} if pieces else {})
            raw = self._event(chunk, choices[0], delta) if delta or _ends(chunk, choices[0]) else b""
        return before + raw

    def _piece(self, piece: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
        """The output for this chunk of a call: the chunk itself, and the calls completed before it."""
        key: Any = place_of(piece.get("index"))
        if key is None:
            key = text_of(piece.get("id")) or self._last
        another = begins_another(self._ids.get(key, ""), piece)
        if another or key != self._last:
            yield from self._released()
        if another:
            self._known.discard(key)
        self._last, self._ids[key] = key, text_of(piece.get("id")) or self._ids.get(key, "")
        if key in self._known:
            yield piece
            return
        call = self._held.setdefault(key, StreamedCall())
        call.add(piece)
        if call.name and call.name != self._reader.own:
            self._known.add(key)
            del self._held[key]
            yield self._signed(piece if call.whole.keys() <= piece.keys() else self._whole(key, call.whole))

    def _released(self) -> Iterator[Mapping[str, Any]]:
        held, self._held = self._held, {}
        for key, call in held.items():
            self._known.add(key)
            whole = self._whole(key, call.whole)
            native = call_of(whole, self._reader)
            if native is not None:
                yield self._signed(native)
            else:
                self._dropped += 1
                self._unsigned = self._unsigned or placeholder(whole)

    def _signed(self, call: Mapping[str, Any]) -> Mapping[str, Any]:
        extra, self._unsigned = self._unsigned, {}
        return call if placeholder(call) or not extra else {**call, EXTRA: extra}

    def _whole(self, key: object, call: Mapping[str, Any]) -> Mapping[str, Any]:
        return {"index": key - self._dropped, **call} if isinstance(key, int) else call

    def _sent(self, calls: list[Mapping[str, Any]]) -> bytes:
        if not calls:
            return b""
        chunk = {name: value for name, value in self._chunk.items() if name != "usage"}
        choice = object_of(next(iter(objects_of(self._chunk.get("choices") or [])), {}))
        return self._event(chunk, {**choice, "finish_reason": None}, {"tool_calls": calls})

    def _event(self, chunk: Document, choice: Mapping[str, Any], delta: Mapping[str, Any]) -> bytes:
        return b"data: " + written(chunk | {"choices": [{**choice, "delta": delta}]}) + b"\n\n"


class ChatCallTool:
    takes_any_text = True

    def described(self, tool: Tool) -> Tool:
        return tool

    def closed(self, request: LlmRequest) -> str:
        return unfit(request)

    def offer(self, tool: CallTool) -> bytes:
        function = {"name": tool.name, "description": tool.description, "parameters": schema()}
        return with_breakpoint({"type": "function", "function": function}, tool.breakpoint)

    def tools(self, request: LlmRequest, entry: bytes) -> list[Edit]:
        return array_edits(request, entry)

    def calls(self, request: LlmRequest, own: str) -> list[Edit]:
        messages = objects(request, member(request, request.fields, "messages"))
        return [edit for _, message in messages for edit in _message_edits(request, message, own)]

    def spots(self, request: LlmRequest) -> Sequence[Spot]:
        messages = objects(request, member(request, request.fields, "messages"))
        said = (fields for _, fields in messages if value(request, fields, "role") == "user")
        spots = (spot_in(request, member(request, each, "content"), text_part, TEXTS, "") for each in said)
        return [spot for spot in spots if spot is not None]

    def translated(self, answer: Document, reader: Reader) -> Document:
        choices = [_choice(choice, reader) for choice in objects_of(answer.get("choices") or [])]
        return answer if choices == answer.get("choices") else answer | {"choices": choices}

    def translator(self, reader: Reader) -> Translator:
        return ChatTranslator(reader)


def schema() -> Document:
    """The schema of the arguments of `call_tool`."""
    properties = {
        "name": {"type": "string", "description": "The tool's name"},
        "arguments": {"type": "object", "description": "The tool's own arguments"},
    }
    return {"type": "object", "properties": properties, "required": ["name", "arguments"]}


def with_breakpoint(entry: Document, breakpoint_: bytes | None) -> bytes:
    data = written(entry)
    return data if breakpoint_ is None else data[:-1] + b',"cache_control":' + breakpoint_ + b"}"


def text_part(text: str) -> Document:
    return {"type": "text", "text": text}


def _message_edits(request: LlmRequest, message: Fields, own: str) -> Iterator[Edit]:
    for _, call in objects(request, member(request, message, "tool_calls")):
        yield from _function_edits(request, call, "function", own)
    yield from _function_edits(request, message, "function_call", own)
    name = value(request, message, "name")
    is_result = value(request, message, "role") in ("tool", "function")
    if is_result and name is not None and name not in staying(request):
        yield Edit(*message["name"].value, written(own))


def _function_edits(request: LlmRequest, fields: Fields, key: str, own: str) -> Iterator[Edit]:
    span = member(request, fields, key)
    if span is not None:
        function = members(request.text, span)
        yield from call_edits(request, function, "arguments", own=own, wrap=wrapped_text, empty=b'""')


def _choice(choice: Mapping[str, Any], reader: Reader) -> Mapping[str, Any]:
    message = object_of(choice.get("message"))
    said = message.get("tool_calls")
    if not isinstance(said, list):
        return choice
    calls = [native for call in objects_of(said) if (native := call_of(call, reader)) is not None]
    without = {name: each for name, each in message.items() if name != "tool_calls"}
    calls = still_signed(objects_of(said), calls)
    return {**choice, "message": {**message, "tool_calls": calls} if calls else without}


def call_of(call: Mapping[str, Any], reader: Reader) -> Mapping[str, Any] | None:
    """A complete call as the client gets it; None if it is dropped."""
    function = object_of(call.get("function"))
    if function.get("name") != reader.own:
        return call
    native = reader.native(text_of(function.get("arguments")))
    if native is None:
        return None if reader.drops else call
    return {**call, "function": {**function, "name": native.name, "arguments": native.arguments}}


def _ends(chunk: Document, choice: Mapping[str, Any]) -> bool:
    return choice.get("finish_reason") is not None or chunk.get("usage") is not None
