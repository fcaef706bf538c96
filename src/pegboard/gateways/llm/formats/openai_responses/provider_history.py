"""Responses that OpenAI keeps: a request continues one by its id, and brings the results of its calls."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from pegboard.gateways.llm.formats.edits import prepended, with_value, written
from pegboard.gateways.llm.formats.json_reader import text_of
from pegboard.gateways.llm.formats.openai_responses.search_output import search_output
from pegboard.gateways.llm.formats.openai_responses.tool_search import (
    SEARCH_CALL,
    asked,
    called_items,
    is_stored,
    listed_input,
)
from pegboard.gateways.llm.formats.protocol import LlmRequest, OpenCall
from pegboard.gateways.llm.formats.tool_search import Document, FunctionCall, Hides


class ResponsesHistory:
    def left_open(self, answer: Document, hides: Hides) -> list[tuple[str, FunctionCall]]:
        items = called_items(answer) if is_stored(answer) else []
        calls = [(text_of(item.get("type")), asked(item)) for item in items]
        return [(kind, call) for kind, call in calls if hides(call.name)]

    def continuing(self, request: LlmRequest, answer: str, results: Sequence[tuple[OpenCall, str]]) -> bytes:
        body = with_value(request.body, "previous_response_id", written(answer))
        if not results:
            return body
        return prepended(listed_input(body), "input", [_result(request, call, text) for call, text in results])


def _result(request: LlmRequest, call: OpenCall, text: str) -> Mapping[str, Any]:
    if call.kind == SEARCH_CALL:
        return search_output(request, call.id, call.found or ())
    return {"type": f"{call.kind}_output", "call_id": call.id, "output": text}
