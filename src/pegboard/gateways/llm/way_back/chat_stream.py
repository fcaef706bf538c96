"""Several streamed chat completions as one."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from pegboard.gateways.llm.reading import object_of, objects_of, text_of
from pegboard.gateways.llm.way_back.chat_calls import Call
from pegboard.gateways.llm.way_back.edits import APART, loaded, summed, written
from pegboard.gateways.llm.way_back.frames import Frames
from pegboard.gateways.llm.way_back.wire import Document, Hides

DONE = b"[DONE]"


@dataclass(slots=True)
class Round:
    """One answer, as far as it has come: what its message is, and the chunks that end it."""

    message: dict[str, Any] = field(default_factory=dict)
    calls: dict[object, Call] = field(default_factory=dict)
    tail: list[tuple[bytes, Document | None]] = field(default_factory=list)
    usage: Any = None
    finish: Any = None
    is_known: bool = True

    @property
    def holds(self) -> bool:
        """Whether any call was held back."""
        return any(call.place is None for call in self.calls.values())


class ChatJoiner:
    def __init__(self) -> None:
        self._rounds = 0
        self._shared: Document = {}
        self._spoke = False
        self._used: Any = None
        self._shown = 0
        self._frames = Frames()
        self._round = Round()

    def begin(self, held: Hides) -> None:
        if self._rounds:
            self._used = summed(self._used, self._round.usage)
            self._spoke = self._spoke or bool(self._round.message.get("content"))
        self._rounds += 1
        self._held = held
        self._frames = Frames()
        self._round = Round()

    def feed(self, piece: bytes) -> bytes:
        return b"".join(self._passed(raw, data) for raw, data in self._frames.feed(piece))

    def close(self) -> Document | None:
        round_ = self._round
        round_.tail += [(raw, loaded(data)) for raw, data in self._frames.finish()]
        if round_.finish is None or not round_.is_known:
            return None
        calls = [call.whole for call in round_.calls.values()]
        message = {"role": "assistant"} | round_.message | {"content": round_.message.get("content") or None}
        message |= {"tool_calls": calls} if calls else {}
        return {"choices": [{"index": 0, "message": message, "finish_reason": round_.finish}]}

    def finish(self, hides: Hides) -> bytes:
        return b"".join([*self._late_calls(hides), *(self._ended(raw, chunk) for raw, chunk in self._round.tail)])

    def failed(self, body: bytes) -> bytes:
        error = (loaded(body) or {}).get("error") or {"message": body.decode("utf-8", "replace"), "type": "api_error"}
        return _event({"error": error})

    def _passed(self, raw: bytes, data: bytes) -> bytes:
        chunk = loaded(data)
        if data == DONE:
            self._round.tail.append((raw, None))
            return b""
        if chunk is None:
            return raw
        return self._chunk(raw, chunk)

    def _chunk(self, raw: bytes, chunk: Document) -> bytes:
        if self._rounds == 1:
            self._shared = self._shared or {name: chunk[name] for name in ("id", "created") if name in chunk}
        choices = objects_of(chunk.get("choices") or [])
        used = chunk.get("usage")
        if used is not None:
            self._round.usage = used
        if not choices:
            self._round.tail += [(raw, chunk)] if used is not None else []
            return b"" if used is not None or self._rounds > 1 else raw
        choice, said = choices[0], object_of(choices[0].get("delta"))
        delta = self._visible(said)
        self._round.finish = choice.get("finish_reason", self._round.finish)
        if self._round.finish is not None and self._round.holds:
            return self._last(raw, chunk, choice, delta)
        if delta == said and self._rounds == 1:
            return raw
        if self._round.finish is not None:
            return self._sent(chunk, choice, delta)
        return self._sent(chunk, choice, delta) if _says(delta) or (self._rounds == 1 and delta) else b""

    def _last(self, raw: bytes, chunk: Document, choice: Mapping[str, Any], delta: Mapping[str, Any]) -> bytes:
        """The chunk that says why the answer ended waits, where it may not be the end; what else it says does not."""
        if _says(delta):
            self._round.tail.append((b"", chunk | {"choices": [{**choice, "delta": {}}]}))
            return self._sent(chunk | {"usage": None}, {**choice, "finish_reason": None}, delta)
        self._round.tail.append((raw, chunk | {"choices": [{**choice, "delta": dict(delta)}]}))
        return b""

    def _visible(self, said: Mapping[str, Any]) -> Mapping[str, Any]:
        """What the client sees of a delta: no calls that are held, and whose message it is only once."""
        first_words = not self._round.message.get("content")
        self._note(said)
        delta = dict(said)
        if said.get("tool_calls"):
            calls = [piece for call in objects_of(said["tool_calls"]) for piece in self._call(call)]
            delta["tool_calls"] = calls
            if not calls:
                del delta["tool_calls"]
        if self._rounds > 1:
            delta.pop("role", None)
            if delta.get("content") and first_words and self._spoke:
                delta["content"] = APART + text_of(delta["content"])
        return delta

    def _note(self, said: Mapping[str, Any]) -> None:
        message = self._round.message
        for name, value in said.items():
            if name in ("tool_calls", "role") or value is None:
                continue
            self._round.is_known = self._round.is_known and not isinstance(value, Mapping)
            before = message.get(name)
            joins = isinstance(before, str | list) and type(before) is type(value)
            message[name] = before + value if joins else value

    def _call(self, piece: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
        """A piece of a call: as it goes to the client, if it does."""
        calls = self._round.calls
        key: object = piece.get("index")
        if key is None:
            key = piece.get("id") or next(reversed(calls), "")
        call = calls.setdefault(key, Call())
        call.add(piece)
        if not call.name or (self._held(call.name) and call.place is None):
            return
        if call.place is None:
            call.place, self._shown = self._shown, self._shown + 1
            piece = piece if piece.get("id") or "id" not in call.whole else call.whole
        yield {**piece, "index": call.place} if piece.get("index") != call.place else piece

    def _late_calls(self, hides: Hides) -> Iterator[bytes]:
        for call in self._round.calls.values() if self._round.finish is not None else ():
            if call.place is None and call.name and not hides(call.name):
                call.place, self._shown = self._shown, self._shown + 1
                chunk = next((chunk for _, chunk in self._round.tail if chunk and chunk.get("choices")), {})
                choice = {"index": 0, "delta": {}, "finish_reason": None}
                yield self._sent(chunk | {"usage": None}, choice, {"tool_calls": [{**call.whole, "index": call.place}]})

    def _ended(self, raw: bytes, chunk: Document | None) -> bytes:
        if chunk is None:
            return raw
        choices = objects_of(chunk.get("choices") or [])
        told = [
            {**choice, "finish_reason": "stop"}
            if choice.get("finish_reason") == "tool_calls" and not self._shown
            else choice
            for choice in choices
        ]
        if raw and told == choices and self._rounds == 1:
            return raw
        used = {"usage": summed(self._used, chunk["usage"])} if chunk.get("usage") is not None else {}
        return _event(chunk | self._shared | {"choices": told} | used)

    def _sent(self, chunk: Document, choice: Mapping[str, Any], delta: Mapping[str, Any]) -> bytes:
        sent = chunk | self._shared | {"choices": [{**choice, "delta": delta}]}
        if sent.get("usage") is None:
            sent.pop("usage", None)
        else:
            sent["usage"] = summed(self._used, sent["usage"])
        return _event(sent)


def _says(delta: Mapping[str, Any]) -> bool:
    return any(value not in (None, "", [], {}) for name, value in delta.items() if name != "role")


def _event(data: Document) -> bytes:
    return b"data: " + written(data) + b"\n\n"
