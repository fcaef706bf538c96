"""Tool search in Gemini: an extra declaration, its `functionCall` parts, and several answers as one, also when
streamed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import reduce
from typing import Any

from pegboard.gateways.llm.formats.edits import APART, appended, fields_of, listed, loaded, strictly_loaded, written
from pegboard.gateways.llm.formats.gemini.parts import (
    SIGNATURE,
    Part,
    added,
    call_in,
    candidate_of,
    is_said,
    parts_in,
    put,
    set_apart,
    still_signed,
    streams_arguments,
)
from pegboard.gateways.llm.formats.gemini.request import either, field_of
from pegboard.gateways.llm.formats.json_reader import object_of, objects_of, value_of
from pegboard.gateways.llm.formats.json_spans import Edit, elements, members, splice
from pegboard.gateways.llm.formats.protocol import LlmRequest
from pegboard.gateways.llm.formats.streams import Frames
from pegboard.gateways.llm.formats.tool_search import Document, FunctionCall, Hides, Joiner, SearchExchange, SearchTool


@dataclass(slots=True)
class ContentsRound:
    """One answer received so far: its parts, the buffered calls, and the event that ends it."""

    parts: list[Part] = field(default_factory=list)
    late: list[Part] = field(default_factory=list)
    tail: Document | None = None
    used: Any = None
    finish: Any = None
    spoke: bool = False


class ContentsJoiner:
    """Every event is an answer with the new parts and the usage so far."""

    def __init__(self) -> None:
        self._rounds = 0
        self._first: Document = {}
        self._used: Any = None
        self._spoke = False
        self._left = b""
        self._frames = Frames()
        self._round = ContentsRound()

    def begin(self, held: Hides) -> None:
        if self._rounds:
            self._used = added(self._used, self._round.used)
            self._spoke = self._spoke or self._round.spoke
        self._rounds += 1
        self._held = held
        self._frames = Frames()
        self._round = ContentsRound()

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
        return self._left + self._event(tail, still_signed(self._round.late, shown) or [{"text": ""}])

    def failed(self, body: bytes) -> bytes:
        error = (loaded(body) or {}).get("error") or {"code": 500, "message": body.decode("utf-8", "replace")}
        return b"data: " + written({"error": error}) + b"\n\n"

    def _passed(self, raw: bytes, event: Document | None) -> bytes:
        if event is None:
            return raw
        round_, candidate = self._round, candidate_of(event)
        if self._rounds == 1 and "responseId" in event and not self._first:
            self._first = {"responseId": event["responseId"]}
        round_.used = event.get("usageMetadata") or round_.used
        round_.finish = candidate.get("finishReason") or round_.finish
        parts = parts_in(candidate)
        put(round_.parts, parts)
        shown = self._shown(parts)
        if round_.late and round_.finish is not None:
            round_.tail = _with_end(round_.tail or {}, event, round_.finish)
            return self._event(_without_end(event), shown) if shown else b""
        if self._rounds == 1 and shown == parts:
            return raw
        return self._event(event, shown) if shown or shown == parts else b""

    def _shown(self, parts: list[Part]) -> list[Part]:
        """The parts that are not buffered; the first text is separated from text before a search."""
        late = self._round.late
        shown: list[Part] = []
        for part in parts:
            call = call_in(part)
            late_too = any(SIGNATURE in each for each in late)  # a call does not come before the one that is signed
            (late if call and (late_too or self._held(call.name)) else shown).append(part)
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


class ContentsToolSearch:
    def closed(self, request: LlmRequest, query: str) -> str:
        generation = value_of(request.text, request.fields, either(request.fields, "generationConfig"))
        if field_of(generation, "candidateCount") not in (None, 1):
            return "it asks for several answers"
        if request.streams and "alt=sse" not in query:
            return "its answer is streamed as a JSON array"
        return "the arguments of its calls are streamed" if streams_arguments(request.text) else ""

    def offer(self, body: bytes, tool: SearchTool) -> bytes:
        """Adds to a group that has functions already: some reject two such groups."""
        query = {"type": "STRING", "description": "What you want to do, in a few words"}
        kind = {"kind": {"type": "STRING", "enum": [*tool.kinds]}} if tool.kinds else {}
        schema = {"type": "OBJECT", "properties": {"query": query, **kind}, "required": ["query"]}
        return self.extended(
            body, [written({"name": tool.name, "description": tool.description, "parameters": schema})]
        )

    def extended(self, body: bytes, definitions: Sequence[bytes]) -> bytes:
        new = b",".join(definitions)
        text, fields = fields_of(body)
        for span in elements(text, fields["tools"].value) if "tools" in fields else ():
            group = members(text, span)
            key = either(group, "functionDeclarations")
            if key in group and (declared := elements(text, group[key].value)):
                return splice(body, [Edit(declared[-1].end, declared[-1].end, b"," + new)])
        return appended(body, "tools", [b'{"functionDeclarations":[' + new + b"]}"])

    def calls(self, answer: Document) -> list[FunctionCall]:
        return [call for part in _parts(answer) if (call := call_in(part))]

    def waits(self, answer: Document) -> bool:
        return candidate_of(answer).get("finishReason") in (None, "STOP")

    def continued(self, body: bytes, exchanges: Sequence[SearchExchange]) -> bytes:
        return appended(listed(body, "contents"), "contents", [said for each in exchanges for said in _said(each)])

    def merged(self, answers: Sequence[Document], hides: Hides) -> Document:
        last = answers[-1]
        if not last.get("candidates"):
            return last
        before = [part for answer in answers[:-1] for part in _parts(answer) if call_in(part) is None]
        shown = [part for part in _parts(last) if not ((call := call_in(part)) and hides(call.name))]
        shown = still_signed(_parts(last), shown)
        if any(map(is_said, before)) and any(map(is_said, shown)):
            before = [*before, {"text": APART}]  # a part of its own: what refers to texts counts from their beginning
        candidate = _moved(candidate_of(last), len(before))
        content = {**object_of(candidate.get("content")), "parts": [*before, *shown] or [{"text": ""}]}
        used = reduce(added, (answer.get("usageMetadata") for answer in answers))
        first = {"responseId": answers[0]["responseId"]} if "responseId" in answers[0] else {}
        if candidate.get("content") is not None or before:
            candidate = {**candidate, "content": content}
        return last | first | {"candidates": [candidate]} | ({} if used is None else {"usageMetadata": used})

    def joiner(self) -> Joiner:
        return ContentsJoiner()


def _moved(candidate: Mapping[str, Any], by: int) -> Mapping[str, Any]:
    """A candidate whose grounding refers to parts behind so many others."""
    grounding = object_of(candidate.get("groundingMetadata"))
    if not by or not grounding.get("groundingSupports"):
        return candidate
    supports = []
    for support in objects_of(grounding["groundingSupports"]):
        segment = object_of(support.get("segment"))
        supports.append({**support, "segment": {**segment, "partIndex": (segment.get("partIndex") or 0) + by}})
    return {**candidate, "groundingMetadata": {**grounding, "groundingSupports": supports}}


def _parts(answer: Document) -> list[Mapping[str, Any]]:
    return parts_in(candidate_of(answer))


def _said(exchange: SearchExchange) -> list[Document]:
    """The contents for an exchange. All parts stay unchanged because of thought signatures; results are in the order of
    calls."""
    results = [
        {"functionResponse": {**({"id": call.id} if call.id else {}), "name": call.name, "response": _result(text)}}
        for call, text in exchange.results
    ]
    said = {"role": "model", "parts": _parts(exchange.answer)}
    return [said, {"role": "user", "parts": results}]


def _result(text: str) -> Document:
    return strictly_loaded(text) or {"result": text}


def _without_end(event: Document) -> Document:
    """The event without its finish reason."""
    candidate = {name: value for name, value in candidate_of(event).items() if not name.startswith("finish")}
    return event | {"candidates": [candidate]}


def _with_end(before: Document, event: Document, reason: Any) -> Document:
    """The last event with the finish reason and what else one before it said of the end."""
    candidate = {**candidate_of(before), **_given(candidate_of(event)), "finishReason": reason}
    return {**before, **_given(event), "candidates": [candidate]}


def _given(fields: Mapping[str, Any]) -> Document:
    return {name: value for name, value in fields.items() if value is not None}
