"""Results of tools in Chat Completions: messages of the role `tool`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from pegboard.gateways.llm.formats.insertion import member, value
from pegboard.gateways.llm.formats.json_reader import object_of, objects_of, text_of
from pegboard.gateways.llm.formats.protocol import LlmRequest
from pegboard.gateways.llm.formats.tool_arrays import name_in
from pegboard.gateways.llm.formats.tool_results import ToolResult, Words, entries, result_of, said_in
from pegboard.wire_formats import Provider


class ChatResults:
    definitions: Provider = "openai"

    def results(self, request: LlmRequest) -> Sequence[ToolResult]:
        names: dict[str, str] = {}
        words = Words()
        found: list[ToolResult] = []
        last = 0
        for span, message in entries(request, "messages"):
            role, content = value(request, message, "role"), member(request, message, "content")
            if role == "assistant":
                last = span.start
                words.by_model(said_in(request, content, ["text"]))
                for call in objects_of(value(request, message, "tool_calls") or []):
                    names[id_ := text_of(call.get("id"))] = name_in(call)
                    words.calls[id_] = text_of(object_of(call.get("function")).get("arguments"))
            elif role == "user":
                words.by_user(said_in(request, content, ["text"]))
            elif role in ("tool", "function"):
                named = text_of(value(request, message, "name")) if role == "function" else ""
                id_ = text_of(value(request, message, "tool_call_id"))
                result = result_of(request, named or names.get(id_, ""), content, ["text"], words.before(id_))
                found += [result] if result else []
        return [replace(each, new=each.start > last) for each in found]
