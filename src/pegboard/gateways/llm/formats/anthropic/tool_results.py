"""Results of tools in Anthropic Messages: blocks of the user's messages."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from pegboard.gateways.llm.formats.insertion import member, objects, value
from pegboard.gateways.llm.formats.json_reader import text_of
from pegboard.gateways.llm.formats.protocol import LlmRequest
from pegboard.gateways.llm.formats.tool_results import ToolResult, entries, result_of
from pegboard.wire_formats import Provider


class MessagesResults:
    definitions: Provider = "anthropic"

    def results(self, request: LlmRequest) -> Sequence[ToolResult]:
        names: dict[str, str] = {}
        found: list[ToolResult] = []
        last = 0
        for span, message in entries(request, "messages"):
            if value(request, message, "role") == "assistant":
                last = span.start
            for _, block in objects(request, member(request, message, "content")):
                kind = text_of(value(request, block, "type"))
                if kind == "tool_use":
                    names[text_of(value(request, block, "id"))] = text_of(value(request, block, "name"))
                elif kind == "tool_result" and value(request, block, "is_error") is not True:
                    tool = names.get(text_of(value(request, block, "tool_use_id")), "")
                    result = result_of(request, tool, member(request, block, "content"), ["text"])
                    found += [result] if result else []
        return [replace(each, new=each.start > last) for each in found]
