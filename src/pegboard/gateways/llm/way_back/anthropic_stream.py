"""Several streamed messages as one: one start, blocks numbered through, and one end."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from pegboard.gateways.llm.reading import object_of, text_of
from pegboard.gateways.llm.way_back.edits import loaded, summed, written
from pegboard.gateways.llm.way_back.frames import Frames
from pegboard.gateways.llm.way_back.wire import Document, Hides

GROWING: Mapping[str, str] = {"text_delta": "text", "thinking_delta": "thinking", "compaction_delta": "content"}
"""The field of a delta that is added to the field of that name of its block."""


@dataclass(slots=True)
class Block:
    """A block, as far as it has come. ``place`` is its index at the client, if it has one there."""

    whole: dict[str, Any]
    place: int | None = None
    input: str = ""


@dataclass(slots=True)
class Round:
    """One answer, as far as it has come: its blocks, and the events that end it."""

    blocks: dict[int, Block] = field(default_factory=dict)
    tail: list[tuple[bytes, Document]] = field(default_factory=list)
    used: Any = None
    stop: Any = None
    is_known: bool = True


class MessagesJoiner:
    def __init__(self) -> None:
        self._rounds = 0
        self._used: Any = None
        self._next = 0
        self._calls = 0
        self._frames = Frames()
        self._round = Round()

    def begin(self, held: Hides) -> None:
        if self._rounds:
            self._used = summed(self._used, self._round.used)
        self._rounds += 1
        self._held = held
        self._frames = Frames()
        self._round = Round()

    def feed(self, piece: bytes) -> bytes:
        return b"".join(self._passed(raw, loaded(data)) for raw, data in self._frames.feed(piece))

    def close(self) -> Document | None:
        last = b"".join(self._passed(raw, loaded(data)) for raw, data in self._frames.finish())
        round_ = self._round
        if last:
            round_.tail.append((last, {}))
        if round_.stop is None or not round_.is_known:
            return None
        blocks = [round_.blocks[index].whole for index in sorted(round_.blocks)]
        return {"type": "message", "role": "assistant", "content": blocks, "stop_reason": round_.stop}

    def finish(self, hides: Hides) -> bytes:
        return b"".join([*self._late_calls(hides), *(self._ended(raw, event) for raw, event in self._round.tail)])

    def failed(self, body: bytes) -> bytes:
        error = (loaded(body) or {}).get("error") or {"type": "api_error", "message": body.decode("utf-8", "replace")}
        return sent({"type": "error", "error": error})

    def _passed(self, raw: bytes, event: Document | None) -> bytes:
        match event and event.get("type"):
            case "message_start" if event:
                self._round.used = object_of(event.get("message")).get("usage")
                return raw if self._rounds == 1 else b""
            case "message_delta" | "message_stop" if event:
                self._round.tail.append((raw, event))
                self._end(event)
                return b""
            case "content_block_start" if event:
                return self._start(raw, event)
            case "content_block_delta" | "content_block_stop" if event:
                return self._go_on(raw, event)
        return raw

    def _end(self, event: Document) -> None:
        self._round.stop = object_of(event.get("delta")).get("stop_reason") or self._round.stop
        told = object_of(event.get("usage"))
        self._round.used = {**object_of(self._round.used), **{name: n for name, n in told.items() if n is not None}}

    def _start(self, raw: bytes, event: Document) -> bytes:
        block = Block(dict(object_of(event.get("content_block"))))
        self._round.blocks[event["index"]] = block
        is_call = block.whole.get("type") == "tool_use"
        if is_call and self._held(text_of(block.whole.get("name"))):
            return b""
        self._calls += is_call
        block.place, self._next = self._next, self._next + 1
        return _renumbered(raw, event, block.place)

    def _go_on(self, raw: bytes, event: Document) -> bytes:
        block = self._round.blocks.get(event["index"])
        if block is None:
            return raw
        if event["type"] == "content_block_stop" and block.input:
            block.whole["input"] = loaded(block.input) or {}
        elif event["type"] == "content_block_delta":
            self._round.is_known = add(block, object_of(event.get("delta"))) and self._round.is_known
        return b"" if block.place is None else _renumbered(raw, event, block.place)

    def _late_calls(self, hides: Hides) -> Iterator[bytes]:
        for block in self._round.blocks.values() if self._round.stop is not None else ():
            if block.place is None and not hides(text_of(block.whole.get("name"))):
                at = {"index": self._next}
                self._next, self._calls = self._next + 1, self._calls + 1
                partial = {"type": "input_json_delta", "partial_json": block.input or "{}"}
                yield sent({"type": "content_block_start", **at, "content_block": block.whole | {"input": {}}})
                yield sent({"type": "content_block_delta", **at, "delta": partial})
                yield sent({"type": "content_block_stop", **at})

    def _ended(self, raw: bytes, event: Document) -> bytes:
        """The last words, with the usage of all answers, and no calls announced that are none of the client's."""
        if event.get("type") != "message_delta":
            return raw
        delta = dict(object_of(event.get("delta")))
        if delta.get("stop_reason") == "tool_use" and not self._calls:
            delta["stop_reason"] = "end_turn"
        elif self._rounds == 1:
            return raw
        used = summed(self._used, self._round.used) if self._rounds > 1 else event.get("usage")
        return sent(event | {"delta": delta, "usage": used})


def add(block: Block, delta: Mapping[str, Any]) -> bool:
    """Add a delta to its block; whether that is known how to do."""
    kind = text_of(delta.get("type"))
    if kind in GROWING:
        name = GROWING[kind]
        block.whole[name] = text_of(block.whole.get(name)) + text_of(delta.get(name))
    elif kind == "input_json_delta":
        block.input += text_of(delta.get("partial_json"))
    elif kind == "signature_delta":
        block.whole["signature"] = text_of(block.whole.get("signature")) + text_of(delta.get("signature"))
    elif kind == "citations_delta":
        block.whole["citations"] = [*(block.whole.get("citations") or []), delta.get("citation")]
    else:
        return False
    return True


def sent(event: Document) -> bytes:
    return b"event: " + text_of(event.get("type")).encode() + b"\ndata: " + written(event) + b"\n\n"


def _renumbered(raw: bytes, event: Document, place: int) -> bytes:
    return raw if event["index"] == place else sent(event | {"index": place})
