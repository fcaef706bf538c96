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
from pegboard.gateways.llm.formats.tool_results import ToolResult, result_of
from pegboard.wire_formats import Provider


class ResponsesResults:
    definitions: Provider = "responses"

    def results(self, request: LlmRequest) -> Sequence[ToolResult]:
        given = member(request, request.fields, "input")
        if given is None or not begins(request, given, b"["):
            return []
        names: dict[str, str] = {}
        found: list[ToolResult] = []
        last = 0
        for span, item in objects(request, given):
            kind = text_of(value(request, item, "type"))
            if kind in CALLS:
                last = span.start
                said = object_of(read(request.text[slice(*span)]))
                names[text_of(said.get("call_id"))] = called_name(said)
            elif kind in RESULTS:
                tool = names.get(text_of(value(request, item, "call_id")), "")
                result = result_of(request, tool, member(request, item, "output"), ["input_text", "output_text"])
                found += [result] if result else []
            elif value(request, item, "role") == "assistant":
                last = span.start
        return [replace(each, new=each.start > last) for each in found]
