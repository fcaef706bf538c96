"""Native calls in streamed messages: a block of ours is held until it stops."""

from __future__ import annotations

from pegboard.gateways.llm.one_tool.calls import Reader
from pegboard.gateways.llm.reading import object_of, text_of
from pegboard.gateways.llm.way_back.anthropic_stream import sent
from pegboard.gateways.llm.way_back.edits import loaded, written
from pegboard.gateways.llm.way_back.frames import Frames
from pegboard.gateways.llm.way_back.wire import Document


class MessagesTranslator:
    def __init__(self, reader: Reader) -> None:
        self._reader = reader
        self._frames = Frames()
        self._held: dict[int, list[tuple[bytes, Document]]] = {}

    def feed(self, piece: bytes) -> bytes:
        return b"".join(self._passed(raw, loaded(data)) for raw, data in self._frames.feed(piece))

    def finish(self) -> bytes:
        return b"".join(self._passed(raw, loaded(data)) for raw, data in self._frames.finish())

    def _passed(self, raw: bytes, event: Document | None) -> bytes:
        kind = text_of(event.get("type")) if event else ""
        if event is None or not kind.startswith("content_block"):
            return raw
        index = event["index"]
        if kind == "content_block_start":
            block = object_of(event.get("content_block"))
            if block.get("type") == "tool_use" and block.get("name") == self._reader.own:
                self._held[index] = []
        if index not in self._held:
            return raw
        self._held[index].append((raw, event))
        return self._block(self._held.pop(index)) if kind == "content_block_stop" else b""

    def _block(self, held: list[tuple[bytes, Document]]) -> bytes:
        (_, start), *_ = held
        block = object_of(start.get("content_block"))
        pieces = [text_of(object_of(event.get("delta")).get("partial_json")) for _, event in held]
        native = self._reader.native("".join(pieces) or written(block.get("input")).decode())
        if native is None:
            return b"" if self._reader.drops else b"".join(raw for raw, _ in held)
        at = {"index": start["index"]}
        delta = {"type": "input_json_delta", "partial_json": native.arguments}
        return b"".join(
            [
                sent(start | {"content_block": {**block, "name": native.name, "input": {}}}),
                sent({"type": "content_block_delta", **at, "delta": delta}),
                held[-1][0],
            ]
        )
