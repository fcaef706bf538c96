"""Native calls in streamed chat completions: the pieces of a call are held until the next one, or the end, comes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from pegboard.gateways.llm.one_tool.calls import Reader
from pegboard.gateways.llm.reading import object_of, objects_of, text_of
from pegboard.gateways.llm.way_back.chat_calls import Call
from pegboard.gateways.llm.way_back.chat_stream import DONE
from pegboard.gateways.llm.way_back.edits import loaded, written
from pegboard.gateways.llm.way_back.frames import Frames
from pegboard.gateways.llm.way_back.wire import Document


class ChatTranslator:
    def __init__(self, reader: Reader) -> None:
        self._reader = reader
        self._frames = Frames()
        self._known: set[object] = set()
        self._held: dict[object, Call] = {}
        self._last: object = None
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
        """What passes with this piece of a call: it itself, and those that were whole before it."""
        key = piece.get("index")
        if key is None:
            key = piece.get("id") or self._last
        if key != self._last:
            yield from self._released()
        self._last = key
        if key in self._known:
            yield piece
            return
        call = self._held.setdefault(key, Call())
        call.add(piece)
        if call.name and call.name != self._reader.own:
            self._known.add(key)
            del self._held[key]
            yield piece if call.whole.keys() <= piece.keys() else self._whole(key, call.whole)

    def _released(self) -> Iterator[Mapping[str, Any]]:
        held, self._held = self._held, {}
        for key, call in held.items():
            self._known.add(key)
            whole = self._whole(key, call.whole)
            native = call_of(whole, self._reader)
            if native is not None:
                yield native

    def _whole(self, key: object, call: Mapping[str, Any]) -> Mapping[str, Any]:
        return {"index": key, **call} if isinstance(key, int) else call

    def _sent(self, calls: list[Mapping[str, Any]]) -> bytes:
        if not calls:
            return b""
        chunk = {name: value for name, value in self._chunk.items() if name != "usage"}
        choice = object_of(next(iter(objects_of(self._chunk.get("choices") or [])), {}))
        return self._event(chunk, {**choice, "finish_reason": None}, {"tool_calls": calls})

    def _event(self, chunk: Document, choice: Mapping[str, Any], delta: Mapping[str, Any]) -> bytes:
        return b"data: " + written(chunk | {"choices": [{**choice, "delta": delta}]}) + b"\n\n"


def call_of(call: Mapping[str, Any], reader: Reader) -> Mapping[str, Any] | None:
    """A whole call as the client gets it; None where it is dropped."""
    function = object_of(call.get("function"))
    if function.get("name") != reader.own:
        return call
    native = reader.native(text_of(function.get("arguments")))
    if native is None:
        return None if reader.drops else call
    return {**call, "function": {**function, "name": native.name, "arguments": native.arguments}}


def _ends(chunk: Document, choice: Mapping[str, Any]) -> bool:
    return choice.get("finish_reason") is not None or chunk.get("usage") is not None
