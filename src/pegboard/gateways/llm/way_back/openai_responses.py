"""Responses: an extra function, its call items, and one response of several."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import reduce
from typing import Any

from pegboard.gateways.llm.codec import Request
from pegboard.gateways.llm.reading import objects_of, text_of, value_of
from pegboard.gateways.llm.spans import Edit, splice
from pegboard.gateways.llm.way_back.edits import appended, fields_of, schema, summed
from pegboard.gateways.llm.way_back.response_items import asked, is_call, unseen
from pegboard.gateways.llm.way_back.responses_stream import ResponsesJoiner
from pegboard.gateways.llm.way_back.wire import Asked, Document, Exchange, Hides, Joiner, SearchTool


class ResponsesWayBack:
    def closed(self, request: Request, query: str) -> str:
        """One that is stored has an id to go on from, behind which there would be calls that the client never saw."""
        return "" if value_of(request.text, request.fields, "store") is False else "the provider keeps the answer"

    def offer(self, body: bytes, tool: SearchTool) -> bytes:
        function = {"type": "function", "name": tool.name, "description": tool.description, "parameters": schema()}
        return appended(body, "tools", [function | {"strict": False}])

    def calls(self, answer: Document) -> list[Asked]:
        return [asked(item) for item in _items(answer) if is_call(item)]

    def waits(self, answer: Document) -> bool:
        return answer.get("status") == "completed"

    def continued(self, body: bytes, exchanges: Sequence[Exchange]) -> bytes:
        return appended(_listed(body), "input", [item for each in exchanges for item in _said(each)])

    def merged(self, answers: Sequence[Document], hides: Hides) -> Document:
        last = answers[-1]
        if not isinstance(last.get("output"), list):
            return last
        before = [item for answer in answers[:-1] for item in _items(answer) if not is_call(item)]
        shown = [item for item in _items(last) if not (is_call(item) and hides(asked(item).name))]
        used = reduce(summed, (answer.get("usage") for answer in answers))
        first = {"id": answers[0]["id"]} if "id" in answers[0] else {}
        return unseen(last, hides) | first | {"output": [*before, *shown], "usage": used}

    def joiner(self) -> Joiner:
        return ResponsesJoiner()


def _items(answer: Document) -> list[Mapping[str, Any]]:
    return objects_of(answer.get("output") or [])


def _listed(body: bytes) -> bytes:
    """The body with its input as a list: one text there is a message of the user's."""
    text, fields = fields_of(body)
    if "input" not in fields:
        return body
    start, end = fields["input"].value
    if not text[start:end].startswith(b'"'):
        return body
    return splice(body, [Edit(start, start, b'[{"role":"user","content":'), Edit(end, end, b"}]")])


def _said(exchange: Exchange) -> list[Mapping[str, Any]]:
    """The items of an answer and the results of its calls.

    The provider has not stored them, so it knows none by its id: thoughts go back only where they came encrypted.
    """
    said = [
        item for item in _items(exchange.answer) if item.get("type") != "reasoning" or item.get("encrypted_content")
    ]
    items = [item if item.get("type") == "reasoning" else _without_id(item) for item in said]
    kinds = {text_of(item.get("call_id")): text_of(item.get("type")) for item in items}
    results = [
        {"type": f"{kinds[call.id]}_output", "call_id": call.id, "output": text} for call, text in exchange.results
    ]
    return [*items, *results]


def _without_id(item: Mapping[str, Any]) -> Mapping[str, Any]:
    return {name: value for name, value in item.items() if name != "id"}
