"""Native calls in streamed responses: the events of a call item of ours are held until it is done."""

from __future__ import annotations

from collections.abc import Callable

from pegboard.gateways.llm.one_tool.calls import Reader
from pegboard.gateways.llm.reading import object_of, text_of
from pegboard.gateways.llm.way_back.edits import loaded, written
from pegboard.gateways.llm.way_back.frames import Frames
from pegboard.gateways.llm.way_back.wire import Document


class ResponsesTranslator:
    """``translated`` does it for a whole response, which the first and the last events have."""

    def __init__(self, reader: Reader, translated: Callable[[Document, Reader], Document]) -> None:
        self._reader = reader
        self._translated = translated
        self._frames = Frames()
        self._held: dict[int, list[tuple[bytes, Document]]] = {}

    def feed(self, piece: bytes) -> bytes:
        return b"".join(self._passed(raw, loaded(data)) for raw, data in self._frames.feed(piece))

    def finish(self) -> bytes:
        return b"".join(self._passed(raw, loaded(data)) for raw, data in self._frames.finish())

    def _passed(self, raw: bytes, event: Document | None) -> bytes:
        if event is None:
            return raw
        if isinstance(event.get("response"), dict):
            response = self._translated(event["response"], self._reader)
            return raw if response is event["response"] else _event(event | {"response": response})
        if "output_index" not in event:
            return raw
        index, item = event["output_index"], object_of(event.get("item"))
        is_ours = item.get("type") == "function_call" and item.get("name") == self._reader.own
        if event.get("type") == "response.output_item.added" and is_ours and not item.get("namespace"):
            self._held[index] = []
        if index not in self._held:
            return raw
        self._held[index].append((raw, event))
        return self._item(self._held.pop(index)) if event.get("type") == "response.output_item.done" else b""

    def _item(self, held: list[tuple[bytes, Document]]) -> bytes:
        """The four events of a call, with the numbers that four of the held ones had."""
        added, done = held[0][1], held[-1][1]
        item = object_of(done.get("item"))
        native = self._reader.native(text_of(item.get("arguments")))
        if native is None:
            return b"" if self._reader.drops else b"".join(raw for raw, _ in held)
        inner = [event for _, event in held[1:-1]] or [done]
        begun = {**object_of(added.get("item")), "name": native.name, "arguments": ""}
        at = {"item_id": item.get("id"), "output_index": done["output_index"]}
        kind = "response.function_call_arguments"
        events = (
            added | {"item": begun},
            _numbered({"type": f"{kind}.delta", **at, "delta": native.arguments}, inner[0]),
            _numbered({"type": f"{kind}.done", **at, "arguments": native.arguments, "name": native.name}, inner[-1]),
            done | {"item": {**item, "name": native.name, "arguments": native.arguments}},
        )
        return b"".join(map(_event, events))


def _numbered(event: Document, like: Document) -> Document:
    return event | ({"sequence_number": like["sequence_number"]} if "sequence_number" in like else {})


def _event(event: Document) -> bytes:
    return b"event: " + text_of(event.get("type")).encode() + b"\ndata: " + written(event) + b"\n\n"
