"""Results of tools in Chat Completions: messages of the role `tool`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from pegboard.gateways.llm.formats.insertion import member, value
from pegboard.gateways.llm.formats.json_reader import objects_of, text_of
from pegboard.gateways.llm.formats.protocol import LlmRequest
from pegboard.gateways.llm.formats.tool_arrays import name_in
from pegboard.gateways.llm.formats.tool_results import ToolResult, entries, result_of
from pegboard.wire_formats import Provider


class ChatResults:
    definitions: Provider = "openai"

    def results(self, request: LlmRequest) -> Sequence[ToolResult]:
        names: dict[str, str] = {}
        found: list[ToolResult] = []
        last = 0
        for span, message in entries(request, "messages"):
            role = value(request, message, "role")
            if role == "assistant":
                last = span.start
                calls = value(request, message, "tool_calls") or []
                names |= {text_of(call.get("id")): name_in(call) for call in objects_of(calls)}
            elif role in ("tool", "function"):
                named = text_of(value(request, message, "name")) if role == "function" else ""
                tool = named or names.get(text_of(value(request, message, "tool_call_id")), "")
                result = result_of(request, tool, member(request, message, "content"), ["text"])
                found += [result] if result else []
        return [replace(each, new=each.start > last) for each in found]
