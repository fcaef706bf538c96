"""Results of tools in Responses: items of the input."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from pegboard.gateways.llm.formats.insertion import begins, member, objects, value
from pegboard.gateways.llm.formats.json_reader import object_of, read, text_of
from pegboard.gateways.llm.formats.openai_responses.namespaces import called_name
from pegboard.gateways.llm.formats.openai_responses.request import RESULTS
from pegboard.gateways.llm.formats.openai_responses.response import CALLS
from pegboard.gateways.llm.formats.protocol import LlmRequest
from pegboard.gateways.llm.formats.tool_results import ToolResult, Words, result_of, said_in
from pegboard.wire_formats import Provider

TEXTS = ("input_text", "output_text")


class ResponsesResults:
    definitions: Provider = "responses"

    def results(self, request: LlmRequest) -> Sequence[ToolResult]:
        given = member(request, request.fields, "input")
        if given is None or not begins(request, given, b"["):
            return []
        names: dict[str, str] = {}
        words = Words()
        found: list[ToolResult] = []
        last = 0
        for span, item in objects(request, given):
            kind, role = text_of(value(request, item, "type")), value(request, item, "role")
            if kind in CALLS:
                last = span.start
                said = object_of(read(request.text[slice(*span)]))
                names[call := text_of(said.get("call_id"))] = called_name(said)
                words.calls[call] = text_of(said.get("arguments"))
            elif kind in RESULTS:
                call = text_of(value(request, item, "call_id"))
                output = member(request, item, "output")
                result = result_of(request, names.get(call, ""), output, TEXTS, words.before(call))
                found += [result] if result else []
            elif role == "assistant":
                last = span.start
                words.by_model(said_in(request, member(request, item, "content"), TEXTS))
            elif role == "user":
                words.by_user(said_in(request, member(request, item, "content"), TEXTS))
        return [replace(each, new=each.start > last) for each in found]
