"""Gemini: an extra declaration, its `functionCall` parts, and one answer of several."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import reduce
from typing import Any

from pegboard.gateways.llm.codec import Request
from pegboard.gateways.llm.codecs.gemini import either, field_of
from pegboard.gateways.llm.reading import object_of, text_of, value_of
from pegboard.gateways.llm.spans import Edit, elements, members, splice
from pegboard.gateways.llm.way_back.edits import appended, fields_of, listed, loaded, written
from pegboard.gateways.llm.way_back.gemini_parts import added, call_in, candidate_of, parts_in, set_apart
from pegboard.gateways.llm.way_back.gemini_stream import ContentsJoiner
from pegboard.gateways.llm.way_back.wire import Asked, Document, Exchange, Hides, Joiner, SearchTool


class ContentsWayBack:
    def closed(self, request: Request, query: str) -> str:
        generation = value_of(request.text, request.fields, either(request.fields, "generationConfig"))
        if field_of(generation, "candidateCount") not in (None, 1):
            return "it asks for several answers"
        if request.streams and "alt=sse" not in query:
            return "its answer is an array that grows"
        return ""

    def offer(self, body: bytes, tool: SearchTool) -> bytes:
        """In a group that has functions already: two such groups are refused by some."""
        query = {"type": "STRING", "description": "What you want to do, in a few words"}
        schema = {"type": "OBJECT", "properties": {"query": query}, "required": ["query"]}
        function = {"name": tool.name, "description": tool.description, "parameters": schema}
        text, fields = fields_of(body)
        for span in elements(text, fields["tools"].value) if "tools" in fields else ():
            group = members(text, span)
            key = either(group, "functionDeclarations")
            if key in group and (declared := elements(text, group[key].value)):
                return splice(body, [Edit(declared[-1].end, declared[-1].end, b"," + written(function))])
        return appended(body, "tools", [{"functionDeclarations": [function]}])

    def calls(self, answer: Document) -> list[Asked]:
        return [call for part in _parts(answer) if (call := call_in(part))]

    def waits(self, answer: Document) -> bool:
        return candidate_of(answer).get("finishReason") in (None, "STOP")

    def continued(self, body: bytes, exchanges: Sequence[Exchange]) -> bytes:
        return appended(listed(body, "contents"), "contents", [said for each in exchanges for said in _said(each)])

    def merged(self, answers: Sequence[Document], hides: Hides) -> Document:
        last = answers[-1]
        if not last.get("candidates"):
            return last
        before = [part for answer in answers[:-1] for part in _parts(answer) if call_in(part) is None]
        shown = [part for part in _parts(last) if not ((call := call_in(part)) and hides(call.name))]
        if any(text_of(part.get("text")) and not part.get("thought") for part in before):
            shown = set_apart(shown)
        candidate = candidate_of(last)
        content = {**object_of(candidate.get("content")), "parts": [*before, *shown] or [{"text": ""}]}
        used = reduce(added, (answer.get("usageMetadata") for answer in answers))
        first = {"responseId": answers[0]["responseId"]} if "responseId" in answers[0] else {}
        if candidate.get("content") is not None or before:
            candidate = {**candidate, "content": content}
        return last | first | {"candidates": [candidate]} | ({} if used is None else {"usageMetadata": used})

    def joiner(self) -> Joiner:
        return ContentsJoiner()


def _parts(answer: Document) -> list[Mapping[str, Any]]:
    return parts_in(candidate_of(answer))


def _said(exchange: Exchange) -> list[Document]:
    """The answer with every part as it was, for the signatures of thoughts in it; results answer calls in order."""
    results = [
        {"functionResponse": {**({"id": call.id} if call.id else {}), "name": call.name, "response": _result(text)}}
        for call, text in exchange.results
    ]
    said = {"role": "model", "parts": _parts(exchange.answer)}
    return [said, {"role": "user", "parts": results}]


def _result(text: str) -> Document:
    return loaded(text) or {"result": text}
