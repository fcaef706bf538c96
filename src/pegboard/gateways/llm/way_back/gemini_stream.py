"""Several of Gemini's streams as one."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from pegboard.gateways.llm.reading import object_of
from pegboard.gateways.llm.way_back.edits import loaded, written
from pegboard.gateways.llm.way_back.frames import Frames
from pegboard.gateways.llm.way_back.gemini_parts import (
    Part,
    added,
    call_in,
    candidate_of,
    is_said,
    parts_in,
    put,
    set_apart,
)
from pegboard.gateways.llm.way_back.wire import Document, Hides


@dataclass(slots=True)
class Round:
    """One answer, as far as it has come: its parts, the calls that wait, and the event that ends it."""

    parts: list[Part] = field(default_factory=list)
    late: list[Part] = field(default_factory=list)
    tail: Document | None = None
    used: Any = None
    finish: Any = None
    spoke: bool = False


class ContentsJoiner:
    """Every event is an answer of its own, with the parts that are new and the usage so far."""

    def __init__(self) -> None:
        self._rounds = 0
        self._first: Document = {}
        self._used: Any = None
        self._spoke = False
        self._left = b""
        self._frames = Frames()
        self._round = Round()

    def begin(self, held: Hides) -> None:
        if self._rounds:
            self._used = added(self._used, self._round.used)
            self._spoke = self._spoke or self._round.spoke
        self._rounds += 1
        self._held = held
        self._frames = Frames()
        self._round = Round()

    def feed(self, piece: bytes) -> bytes:
        return b"".join(self._passed(raw, loaded(data)) for raw, data in self._frames.feed(piece))

    def close(self) -> Document | None:
        self._left = b"".join(self._passed(raw, loaded(data)) for raw, data in self._frames.finish())
        round_ = self._round
        if round_.finish is None:
            return None
        content = {"role": "model", "parts": round_.parts}
        return {"candidates": [{"content": content, "finishReason": round_.finish}]}

    def finish(self, hides: Hides) -> bytes:
        tail = self._round.tail
        if tail is None:
            return self._left
        shown = [part for part in self._round.late if (call := call_in(part)) and not hides(call.name)]
        return self._left + self._event(tail, shown or [{"text": ""}])

    def failed(self, body: bytes) -> bytes:
        error = (loaded(body) or {}).get("error") or {"code": 500, "message": body.decode("utf-8", "replace")}
        return b"data: " + written({"error": error}) + b"\n\n"

    def _passed(self, raw: bytes, event: Document | None) -> bytes:
        if event is None:
            return raw
        round_, candidate = self._round, candidate_of(event)
        if self._rounds == 1 and "responseId" in event and not self._first:
            self._first = {"responseId": event["responseId"]}
        round_.used = event.get("usageMetadata", round_.used)
        round_.finish = candidate.get("finishReason", round_.finish)
        parts = parts_in(candidate)
        put(round_.parts, parts)
        shown = self._shown(parts)
        if round_.late and round_.finish is not None:
            round_.tail = event
            return self._event(_without_end(event), shown) if shown else b""
        if self._rounds == 1 and shown == parts:
            return raw
        return self._event(event, shown) if shown or shown == parts else b""

    def _shown(self, parts: list[Part]) -> list[Part]:
        """The parts that are not held, the first text apart from what was said before a search."""
        held = [part for part in parts if (call := call_in(part)) and self._held(call.name)]
        shown = [part for part in parts if part not in held]
        self._round.late += held
        if any(map(is_said, shown)) and not self._round.spoke:
            self._round.spoke = True
            return set_apart(shown) if self._spoke else shown
        return shown

    def _event(self, event: Document, parts: list[Part]) -> bytes:
        sent = event | self._first
        if event.get("candidates"):
            candidate = candidate_of(event)
            content: Mapping[str, Any] = {**object_of(candidate.get("content")), "parts": parts}
            sent["candidates"] = [{**candidate, "content": content}]
        if event.get("usageMetadata") is not None:
            sent["usageMetadata"] = added(self._used, event["usageMetadata"])
        return b"data: " + written(sent) + b"\r\n\r\n"


def _without_end(event: Document) -> Document:
    """The event without the word that the answer has ended."""
    candidate = {name: value for name, value in candidate_of(event).items() if not name.startswith("finish")}
    return event | {"candidates": [candidate]}
