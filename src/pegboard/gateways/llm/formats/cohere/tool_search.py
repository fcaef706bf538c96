"""Tool search in Cohere Chat v2: an extra function, its calls, and several answers as one, also when streamed.

In streams, calls, content blocks and citations are numbered separately (docs.cohere.com/v2/docs/streaming).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import reduce
from typing import Any

from pegboard.gateways.llm.formats.edits import APART, appended, loaded, search_function, summed
from pegboard.gateways.llm.formats.json_reader import object_of, objects_of, place_of, text_of
from pegboard.gateways.llm.formats.protocol import LlmRequest
from pegboard.gateways.llm.formats.streams import Frames, named_event
from pegboard.gateways.llm.formats.tool_search import Document, FunctionCall, Hides, Joiner, SearchExchange, SearchTool

CALLS, ENDED = "TOOL_CALL", "COMPLETE"
"""Finish reasons: of an answer that waits for results, and of one that is complete."""
GROWING = ("text", "thinking")
DONE = b"[DONE]"


@dataclass(slots=True)
class StreamedPart:
    """A call or a content block received so far. ``place`` is its index at the client, if it has one."""

    whole: dict[str, Any]
    place: int | None = None


@dataclass(slots=True)
class CohereRound:
    """One answer received so far, and the events that end it."""

    plan: str = ""
    calls: dict[Any, StreamedPart] = field(default_factory=dict)
    content: dict[Any, StreamedPart] = field(default_factory=dict)
    tail: list[tuple[bytes, Document | None]] = field(default_factory=list)
    used: Any = None
    finish: Any = None


class CohereJoiner:
    def __init__(self) -> None:
        self._rounds = 0
        self._first: Document = {}
        self._used: Any = None
        self._planned = False
        self._next: Counter[str] = Counter()
        self._frames = Frames()
        self._round = CohereRound()

    def begin(self, held: Hides) -> None:
        if self._rounds:
            self._used = summed(self._used, self._round.used)
            self._planned = self._planned or bool(self._round.plan)
        self._rounds += 1
        self._held = held
        self._frames = Frames()
        self._round = CohereRound()

    def feed(self, piece: bytes) -> bytes:
        return b"".join(self._passed(raw, data) for raw, data in self._frames.feed(piece))

    def close(self) -> Document | None:
        round_ = self._round
        round_.tail += [(last, None) for raw, data in self._frames.finish() if (last := self._passed(raw, data))]
        if round_.finish is None:
            return None
        said = {
            "tool_plan": round_.plan,
            "tool_calls": [call.whole for call in round_.calls.values()],
            "content": [block.whole for block in round_.content.values()],
        }
        message = {"role": "assistant"} | {name: value for name, value in said.items() if value}
        return {"message": message, "finish_reason": round_.finish}

    def finish(self, hides: Hides) -> bytes:
        return b"".join([*self._late_calls(hides), *(self._ended(raw, event) for raw, event in self._round.tail)])

    def failed(self, body: bytes) -> bytes:
        said = text_of((loaded(body) or {}).get("message")) or body.decode("utf-8", "replace")
        return named_event({"type": "message-end"} | self._first | {"delta": {"finish_reason": "ERROR", "error": said}})

    def _passed(self, raw: bytes, data: bytes) -> bytes:
        event = loaded(data)
        if data == DONE:
            self._round.tail.append((raw, None))
            return b""
        if event is None:
            return raw
        kind = text_of(event.get("type"))
        if kind == "message-start":
            self._first = self._first or {name: event[name] for name in ("id",) if name in event}
            return raw if self._rounds == 1 else b""
        if kind == "message-end":
            return self._end(raw, event)
        if kind == "tool-plan-delta":
            return self._plan(raw, event)
        if kind.startswith("tool-call-"):
            return self._call(raw, event, kind)
        if kind.startswith("content-"):
            return self._content(raw, event, kind)
        return self._citation(raw, event, kind) if kind.startswith("citation-") else raw

    def _end(self, raw: bytes, event: Document) -> bytes:
        delta = object_of(event.get("delta"))
        self._round.finish = delta.get("finish_reason") or self._round.finish
        self._round.used = delta.get("usage") or self._round.used
        self._round.tail.append((raw, event))
        return b""

    def _plan(self, raw: bytes, event: Document) -> bytes:
        begins = not self._round.plan
        said = text_of(_said_in(event).get("tool_plan"))
        self._round.plan += said
        if not (said and begins and self._planned):
            return raw
        return named_event(event | {"delta": {"message": {"tool_plan": APART + said}}})

    def _call(self, raw: bytes, event: Document, kind: str) -> bytes:
        said = object_of(_said_in(event).get("tool_calls"))
        if kind == "tool-call-start":
            call = self._round.calls[place_of(event.get("index"))] = StreamedPart(dict(said))
            if not self._held(text_of(object_of(said.get("function")).get("name"))):
                call.place = self._numbered("call")
        found = self._round.calls.get(place_of(event.get("index")))
        if found is None:
            return raw
        if kind == "tool-call-delta":
            function = object_of(found.whole.get("function"))
            more = text_of(object_of(said.get("function")).get("arguments"))
            found.whole["function"] = {**function, "arguments": text_of(function.get("arguments")) + more}
        return b"" if found.place is None else renumbered(raw, event, found.place)

    def _content(self, raw: bytes, event: Document, kind: str) -> bytes:
        said = object_of(_said_in(event).get("content"))
        if kind == "content-start":
            self._round.content[place_of(event.get("index"))] = StreamedPart(dict(said), self._numbered("content"))
        found = self._round.content.get(place_of(event.get("index")))
        if found is None or found.place is None:
            return raw
        if kind == "content-delta":
            more = {name: text_of(found.whole.get(name)) + text_of(said[name]) for name in GROWING if name in said}
            found.whole |= more
        return renumbered(raw, event, found.place)

    def _citation(self, raw: bytes, event: Document, kind: str) -> bytes:
        """Citations name the content block that they are in."""
        if self._rounds == 1:
            self._next["citation"] += kind == "citation-start"
            return raw
        place = self._numbered("citation") if kind == "citation-start" else self._next["citation"] - 1
        said = object_of(_said_in(event).get("citations"))
        block = self._round.content.get(place_of(said.get("content_index")))
        if block is not None:
            event = event | {"delta": {"message": {"citations": {**said, "content_index": block.place}}}}
        return named_event(event | {"index": place})

    def _numbered(self, kind: str) -> int:
        self._next[kind] += 1
        return self._next[kind] - 1

    def _late_calls(self, hides: Hides) -> Iterator[bytes]:
        for call in self._round.calls.values() if self._round.finish is not None else ():
            function = object_of(call.whole.get("function"))
            if call.place is None and not hides(text_of(function.get("name"))):
                call.place = self._numbered("call")
                yield from call_events(call.place, call.whole)

    def _ended(self, raw: bytes, event: Document | None) -> bytes:
        """The last events, with the total usage, and without announcing calls that the client does not get."""
        if event is None:
            return raw
        delta = object_of(event.get("delta"))
        reason = ended(delta.get("finish_reason"), shown=bool(self._next["call"]))
        if self._rounds == 1 and reason == delta.get("finish_reason"):
            return raw
        used = summed(self._used, self._round.used)
        whole = {**delta, "finish_reason": reason} | ({} if used is None else {"usage": used})
        return named_event(event | self._first | {"delta": whole})


class CohereToolSearch:
    def closed(self, request: LlmRequest, query: str) -> str:
        return ""

    def offer(self, body: bytes, tool: SearchTool) -> bytes:
        return appended(body, "tools", [b'{"type":"function","function":%b}' % search_function(tool)])

    def extended(self, body: bytes, definitions: Sequence[bytes]) -> bytes:
        return appended(body, "tools", definitions)

    def calls(self, answer: Document) -> list[FunctionCall]:
        return [_asked(call) for call in _calls(answer)]

    def waits(self, answer: Document) -> bool:
        return answer.get("finish_reason") == CALLS

    def continued(self, body: bytes, exchanges: Sequence[SearchExchange]) -> bytes:
        return appended(body, "messages", [said for each in exchanges for said in _said(each)])

    def merged(self, answers: Sequence[Document], hides: Hides) -> Document:
        last = answers[-1]
        if not isinstance(last.get("message"), dict):
            return last
        message = dict(last["message"])
        said = {
            "content": [block for answer in answers for block in _content(answer)],
            "tool_plan": APART.join(plan for each in answers if (plan := text_of(_message(each).get("tool_plan")))),
            "tool_calls": [call for call in _calls(last) if not hides(_asked(call).name)],
            "citations": list(_citations(answers)),
        }
        for name, value in said.items():
            if value:
                message[name] = value
            elif message.get(name):
                del message[name]
        reason = ended(last.get("finish_reason"), shown=bool(said["tool_calls"]))
        first = {"id": answers[0]["id"]} if "id" in answers[0] else {}
        used = reduce(summed, (answer.get("usage") for answer in answers))
        whole = {"message": message, "finish_reason": reason}
        return last | first | whole | ({} if used is None else {"usage": used})

    def joiner(self) -> Joiner:
        return CohereJoiner()


def ended(reason: Any, *, shown: bool) -> Any:
    """The finish reason, corrected if the client gets none of the calls."""
    return ENDED if reason == CALLS and not shown else reason


def call_events(place: int, call: Mapping[str, Any]) -> Iterator[bytes]:
    """The events of a complete call with this index."""
    function = object_of(call.get("function"))
    named = {**call, "function": {**function, "arguments": ""}}
    arguments = {"function": {"arguments": text_of(function.get("arguments"))}}
    yield named_event({"type": "tool-call-start", "index": place, "delta": {"message": {"tool_calls": named}}})
    yield named_event({"type": "tool-call-delta", "index": place, "delta": {"message": {"tool_calls": arguments}}})
    yield named_event({"type": "tool-call-end", "index": place})


def _said_in(event: Document) -> Mapping[str, Any]:
    return object_of(object_of(event.get("delta")).get("message"))


def renumbered(raw: bytes, event: Document, place: int) -> bytes:
    return raw if event.get("index") == place else named_event(event | {"index": place})


def _message(answer: Document) -> Mapping[str, Any]:
    return object_of(answer.get("message"))


def _calls(answer: Document) -> list[Mapping[str, Any]]:
    return objects_of(_message(answer).get("tool_calls") or [])


def _content(answer: Document) -> list[Mapping[str, Any]]:
    return objects_of(_message(answer).get("content") or [])


def _citations(answers: Sequence[Document]) -> Iterator[Mapping[str, Any]]:
    """The citations of all answers; each names its content block, which stands behind those of earlier answers."""
    before = 0
    for answer in answers:
        for each in objects_of(_message(answer).get("citations") or []):
            block = each.get("content_index")
            yield {**each, "content_index": block + before} if isinstance(block, int) and before else each
        before += len(_content(answer))


def _asked(call: Mapping[str, Any]) -> FunctionCall:
    function = object_of(call.get("function"))
    return FunctionCall(
        name=text_of(function.get("name")), arguments=text_of(function.get("arguments")), id=text_of(call.get("id"))
    )


def _said(exchange: SearchExchange) -> list[Mapping[str, Any]]:
    results = [{"role": "tool", "tool_call_id": call.id, "content": text} for call, text in exchange.results]
    return [_message(exchange.answer), *results]
