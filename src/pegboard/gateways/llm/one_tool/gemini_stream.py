"""Native calls in Gemini's answers: a call is one part, whole, so nothing is held."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from pegboard.gateways.llm.one_tool.calls import Reader
from pegboard.gateways.llm.reading import object_of
from pegboard.gateways.llm.way_back.edits import loaded, written
from pegboard.gateways.llm.way_back.frames import Frames
from pegboard.gateways.llm.way_back.gemini_parts import Part, call_in
from pegboard.gateways.llm.way_back.wire import Document


class ContentsTranslator:
    """``translated`` does it for an answer, of which every event is one."""

    def __init__(self, reader: Reader, translated: Callable[[Document, Reader], Document]) -> None:
        self._reader = reader
        self._translated = translated
        self._frames = Frames()

    def feed(self, piece: bytes) -> bytes:
        return b"".join(self._passed(raw, loaded(data)) for raw, data in self._frames.feed(piece))

    def finish(self) -> bytes:
        return b"".join(self._passed(raw, loaded(data)) for raw, data in self._frames.finish())

    def _passed(self, raw: bytes, event: Document | None) -> bytes:
        native = None if event is None else self._translated(event, self._reader)
        return raw if native is None or native is event else b"data: " + written(native) + b"\r\n\r\n"


def native_parts(parts: Sequence[Part], reader: Reader) -> list[Part]:
    """The parts as the client gets them: a call keeps its id, and the signature of the thought that led to it."""
    return [native for part in parts if (native := _native(part, reader)) is not None]


def _native(part: Part, reader: Reader) -> Part | None:
    call = call_in(part)
    if call is None or call.name != reader.own:
        return part
    native = reader.native(call.arguments)
    if native is None:
        return None if reader.drops else part
    said = {**object_of(part["functionCall"]), "name": native.name, "args": loaded(native.arguments) or {}}
    return {**part, "functionCall": said}
