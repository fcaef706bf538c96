"""Results of tools in Anthropic Messages: blocks of the user's messages."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from pegboard.gateways.llm.formats.insertion import member, objects, value
from pegboard.gateways.llm.formats.json_reader import text_of
from pegboard.gateways.llm.formats.protocol import LlmRequest
from pegboard.gateways.llm.formats.tool_results import ToolResult, Words, entries, raw, result_of, said_in
from pegboard.wire_formats import Provider


class MessagesResults:
    definitions: Provider = "anthropic"

    def results(self, request: LlmRequest) -> Sequence[ToolResult]:
        names: dict[str, str] = {}
        words = Words()
        found: list[ToolResult] = []
        last = 0
        for span, message in entries(request, "messages"):
            content = member(request, message, "content")
            blocks = [(text_of(value(request, block, "type")), block) for _, block in objects(request, content)]
            if value(request, message, "role") == "assistant":
                last = span.start
                words.by_model(said_in(request, content, ["text"]))
            elif all(kind != "tool_result" for kind, _ in blocks):  # beside results clients put words of their own
                words.by_user(said_in(request, content, ["text"]))
            for kind, block in blocks:
                if kind == "tool_use":
                    names[call := text_of(value(request, block, "id"))] = text_of(value(request, block, "name"))
                    words.calls[call] = raw(request, member(request, block, "input"))
                elif kind == "tool_result" and value(request, block, "is_error") is not True:
                    call = text_of(value(request, block, "tool_use_id"))
                    content = member(request, block, "content")
                    result = result_of(request, names.get(call, ""), content, ["text"], words.before(call))
                    found += [result] if result else []
        return [replace(each, new=each.start > last) for each in found]
