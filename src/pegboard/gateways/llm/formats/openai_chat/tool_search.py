"""Tool search in Chat Completions: an extra function, its calls, and several completions as one, also when streamed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import reduce
from typing import Any, cast

from pegboard.gateways.llm.formats.edits import APART, appended, loaded, search_function, summed, written
from pegboard.gateways.llm.formats.json_reader import object_of, objects_of, place_of, text_of, value_of
from pegboard.gateways.llm.formats.protocol import LlmRequest
from pegboard.gateways.llm.formats.streams import Frames
from pegboard.gateways.llm.formats.tool_search import Document, FunctionCall, Hides, Joiner, SearchExchange, SearchTool

GROWING = ("arguments", "input")
GROWS_INSIDE = "audio"
"""The object of a message whose parts come in pieces; of other objects the later parts count."""
DONE = b"[DONE]"
EMPTY = (None, "")
"""What servers send in chunks that continue a call for what its first chunk said."""
EXTRA, SIGNATURE = "extra_content", "thought_signature"
"""Where Gemini's endpoints have the signature of the first of parallel calls, beneath the name of a vendor."""
SIGNED_BY_NOBODY = "skip_thought_signature_validator"
"""What Google takes in place of a thought signature that is not to be had (Gemini API, Thought signatures, FAQs)."""
THOUGHTS = ("reasoning_content", "reasoning")
"""Fields in which servers return the model's reasoning."""


@dataclass(slots=True)
class StreamedCall:
    """A tool call received so far. ``place`` is its index at the client, once it has one."""

    whole: dict[str, Any] = field(default_factory=dict)
    place: int | None = None

    @property
    def name(self) -> str:
        return text_of((object_of(self.whole.get("function")) or object_of(self.whole.get("custom"))).get("name"))

    def add(self, piece: Mapping[str, Any]) -> None:
        """Add a chunk: arguments are appended, everything else comes once."""
        for name, value in piece.items():
            if isinstance(value, Mapping):
                self.whole[name] = _grown(object_of(self.whole.get(name)), value)
            elif name != "index" and (value not in EMPTY or name not in self.whole):
                self.whole[name] = value

    def ends_at(self, piece: Mapping[str, Any]) -> bool:
        """Whether a chunk with this call's index begins another call."""
        return begins_another(text_of(self.whole.get("id")), piece)


@dataclass(slots=True)
class ChatRound:
    """One answer received so far: its message, and the chunks that end it. ``open`` is the last call of each index."""

    message: dict[str, Any] = field(default_factory=dict)
    calls: list[StreamedCall] = field(default_factory=list)
    open: dict[object, StreamedCall] = field(default_factory=dict)
    tail: list[tuple[bytes, Document | None]] = field(default_factory=list)
    usage: Any = None
    finish: Any = None
    is_known: bool = True

    @property
    def holds(self) -> bool:
        """Whether any call is buffered."""
        return any(call.place is None for call in self.calls)

    @property
    def holds_signed(self) -> bool:
        """Whether a buffered call is signed: no other call may come before it."""
        return any(call.place is None and placeholder(call.whole) for call in self.calls)


class ChatJoiner:
    def __init__(self) -> None:
        self._rounds = 0
        self._shared: Document = {}
        self._spoke = False
        self._used: Any = None
        self._shown = 0
        self._frames = Frames()
        self._round = ChatRound()

    def begin(self, held: Hides) -> None:
        if self._rounds:
            self._used = summed(self._used, self._round.usage)
            self._spoke = self._spoke or bool(self._round.message.get("content"))
        self._rounds += 1
        self._held = held
        self._frames = Frames()
        self._round = ChatRound()

    def feed(self, piece: bytes) -> bytes:
        return b"".join(self._passed(raw, data) for raw, data in self._frames.feed(piece))

    def close(self) -> Document | None:
        round_ = self._round
        round_.tail += [(raw, loaded(data)) for raw, data in self._frames.finish()]
        if round_.finish is None or not round_.is_known:
            return None
        calls = [call.whole for call in round_.calls]
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
            passes = used is None and (self._rounds == 1 or "error" in chunk)
            return raw if passes else b""
        choice, said = choices[0], object_of(choices[0].get("delta"))
        delta = self._visible(said)
        self._round.finish = choice.get("finish_reason") or self._round.finish
        if self._round.finish is not None and self._round.holds:
            return self._last(raw, chunk, choice, delta)
        if delta == said and self._rounds == 1:
            return raw
        if self._round.finish is not None:
            return self._sent(chunk, choice, delta)
        return self._sent(chunk, choice, delta) if _says(delta) or (self._rounds == 1 and delta) else b""

    def _last(self, raw: bytes, chunk: Document, choice: Mapping[str, Any], delta: Mapping[str, Any]) -> bytes:
        """Buffers the chunk with the finish reason, as the answer may continue; other fields of the chunk pass."""
        if _says(delta):
            self._round.tail.append((b"", chunk | {"choices": [{**choice, "delta": {}}]}))
            return self._sent(chunk | {"usage": None}, {**choice, "finish_reason": None}, delta)
        self._round.tail.append((raw, chunk | {"choices": [{**choice, "delta": dict(delta)}]}))
        return b""

    def _visible(self, said: Mapping[str, Any]) -> Mapping[str, Any]:
        """What the client gets of a delta: no buffered calls, and the role only once."""
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
            if first_words and self._spoke and (words := text_of(delta.get("content"))):
                delta["content"] = APART + words
        return delta

    def _note(self, said: Mapping[str, Any]) -> None:
        message = self._round.message
        for name, value in said.items():
            if name in ("tool_calls", "role") or value is None:
                continue
            before = message.get(name)
            if isinstance(value, Mapping):
                self._round.is_known = self._round.is_known and name != GROWS_INSIDE
                message[name] = {**object_of(before), **value}
                continue
            joins = isinstance(before, str | list) and isinstance(value, str | list)
            message[name] = _together([cast("str | list[Any]", before), value], "") if joins else value

    def _call(self, piece: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
        """A chunk of a call as it goes to the client, if it does."""
        call = self._opened(piece)
        call.add(piece)
        if not call.name or (call.place is None and (self._held(call.name) or self._round.holds_signed)):
            return
        if call.place is None:
            call.place, self._shown = self._shown, self._shown + 1
            piece = piece if piece.get("id") or "id" not in call.whole else call.whole
        yield {**piece, "index": call.place} if piece.get("index") != call.place else piece

    def _opened(self, piece: Mapping[str, Any]) -> StreamedCall:
        """The call that a chunk begins or continues."""
        round_ = self._round
        key: object = place_of(piece.get("index"))
        if key is None:
            key = text_of(piece.get("id")) or next(reversed(round_.open), "")
        if key not in round_.open or round_.open[key].ends_at(piece):
            round_.open.pop(key, None)
            round_.open[key] = StreamedCall()
            round_.calls.append(round_.open[key])
        return round_.open[key]

    def _late_calls(self, hides: Hides) -> Iterator[bytes]:
        calls = self._round.calls if self._round.finish is not None else []
        shown = [call for call in calls if call.place is not None or (call.name and not hides(call.name))]
        signed = still_signed([call.whole for call in calls], [call.whole for call in shown])
        for call, whole in zip(shown, signed, strict=True):
            if call.place is None:
                call.place, self._shown = self._shown, self._shown + 1
                chunk = next((chunk for _, chunk in self._round.tail if chunk and chunk.get("choices")), {})
                choice = {"index": 0, "delta": {}, "finish_reason": None}
                yield self._sent(chunk | {"usage": None}, choice, {"tool_calls": [{**whole, "index": call.place}]})

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


class ChatToolSearch:
    def closed(self, request: LlmRequest, query: str) -> str:
        if request.layout != "tools":
            return "it uses the legacy `functions`"
        if value_of(request.text, request.fields, "n") not in (None, 1):
            return "it asks for several answers"
        return ""

    def offer(self, body: bytes, tool: SearchTool) -> bytes:
        return appended(body, "tools", [b'{"type":"function","function":%b}' % search_function(tool)])

    def extended(self, body: bytes, definitions: Sequence[bytes]) -> bytes:
        return appended(body, "tools", definitions)

    def calls(self, answer: Document) -> list[FunctionCall]:
        return [_asked(call) for call in _calls(_message(answer))]

    def waits(self, answer: Document) -> bool:
        choices = objects_of(answer.get("choices") or [])
        return bool(choices) and choices[0].get("finish_reason") not in ("length", "content_filter")

    def continued(self, body: bytes, exchanges: Sequence[SearchExchange]) -> bytes:
        return appended(body, "messages", [said for each in exchanges for said in _said(each)])

    def merged(self, answers: Sequence[Document], hides: Hides) -> Document:
        last = answers[-1]
        choices = objects_of(last.get("choices") or [])
        if not choices:
            return last
        message = _joined([_message(answer) for answer in answers])
        calls = still_signed(_calls(message), [call for call in _calls(message) if not hides(_asked(call).name)])
        if "tool_calls" in message:
            del message["tool_calls"]
            message |= {"tool_calls": calls} if calls else {}
        reason = ended(choices[0].get("finish_reason"), shown=bool(calls))
        first = {name: answers[0][name] for name in ("id", "created") if name in answers[0]}
        used = reduce(summed, (answer.get("usage") for answer in answers))
        ended_by = {"finish_reason": reason} if "finish_reason" in choices[0] else {}
        whole = {"choices": [{**choices[0], "message": message, **ended_by}]}
        return last | first | whole | ({} if used is None else {"usage": used})

    def joiner(self) -> Joiner:
        return ChatJoiner()


def ended(reason: Any, *, shown: bool) -> Any:
    """The finish reason, corrected if the client gets none of the calls."""
    return "stop" if reason == "tool_calls" and not shown else reason


def placeholder(call: Mapping[str, Any]) -> Mapping[str, Any]:
    """What another call has in `extra_content` in place of this one's thought signature; empty if this has none."""
    extra = object_of(call.get(EXTRA))
    return {vendor: {SIGNATURE: SIGNED_BY_NOBODY} for vendor in extra if object_of(extra[vendor]).get(SIGNATURE)}


def still_signed(calls: Sequence[Mapping[str, Any]], shown: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """The calls of an answer that are ``shown``: the first has a placeholder if the one that was signed is left out."""
    extra = next(filter(None, map(placeholder, calls)), {})
    if not extra or not shown or placeholder(shown[0]):
        return [*shown]
    return [{**shown[0], EXTRA: extra}, *shown[1:]]


def _joined(messages: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """The last message, with the text of the earlier ones before its own."""
    message = dict(messages[-1])
    for name, apart in (("content", APART), *((name, "") for name in THOUGHTS)):
        said = [text for each in messages if isinstance(text := each.get(name), str | list) and text]
        message |= {name: _together(said, apart)} if said else {}
    return message


def _together(said: Sequence[str | list[Any]], apart: str) -> str | list[Any]:
    """Several contents as one: a text, or a list of parts where any of them is one (Mistral's models that reason)."""
    texts = [each for each in said if isinstance(each, str)]
    if len(texts) == len(said):
        return apart.join(texts)
    return [part for each in said for part in ([{"type": "text", "text": each}] if isinstance(each, str) else each)]


def _message(answer: Document) -> Mapping[str, Any]:
    choices = objects_of(answer.get("choices") or [])
    return object_of(choices[0].get("message")) if choices else {}


def _calls(message: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    return objects_of(message.get("tool_calls") or [])


def _asked(call: Mapping[str, Any]) -> FunctionCall:
    """The arguments of a function are JSON; the input of a custom tool is any text."""
    of = object_of(call.get("function")) or object_of(call.get("custom"))
    arguments = text_of(of.get("arguments")) or text_of(of.get("input"))
    return FunctionCall(name=text_of(of.get("name")), arguments=arguments, id=text_of(call.get("id")))


def _said(exchange: SearchExchange) -> list[Mapping[str, Any]]:
    results = [{"role": "tool", "tool_call_id": call.id, "content": text} for call, text in exchange.results]
    return [_message(exchange.answer), *results]


def _says(delta: Mapping[str, Any]) -> bool:
    return any(value not in (None, "", [], {}) for name, value in delta.items() if name != "role")


def _event(data: Document) -> bytes:
    return b"data: " + written(data) + b"\n\n"


def begins_another(id_: str, piece: Mapping[str, Any]) -> bool:
    """Whether a chunk with the index of the call with this id begins another call: Gemini's endpoint numbers all calls
    of an answer 0. Some servers give every chunk of one call a new id, but its name only once."""
    function = object_of(piece.get("function")) or object_of(piece.get("custom"))
    return bool(id_ and text_of(function.get("name"))) and piece.get("id") not in (*EMPTY, id_)


def _grown(before: Mapping[str, Any], more: Mapping[str, Any]) -> dict[str, Any]:
    grown = dict(before)
    for name, value in more.items():
        if name in GROWING and isinstance(grown.get(name), str) and isinstance(value, str):
            grown[name] += value
        elif value not in EMPTY or name not in grown:
            grown[name] = value
    return grown
