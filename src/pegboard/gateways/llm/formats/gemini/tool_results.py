"""Results of tools in Gemini: responses of functions, which are JSON objects."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from pegboard.gateways.llm.formats.gemini.request import either
from pegboard.gateways.llm.formats.insertion import Fields, begins, member, objects, value
from pegboard.gateways.llm.formats.json_reader import read, text_of
from pegboard.gateways.llm.formats.json_spans import Span, members
from pegboard.gateways.llm.formats.protocol import LlmRequest
from pegboard.gateways.llm.formats.tool_results import ResultText, ToolResult, Words, entries, raw
from pegboard.wire_formats import Provider

ERROR = "error"
FRAME = (b'{"result":', b"}")


class ContentsResults:
    definitions: Provider = "gemini"

    def results(self, request: LlmRequest) -> Sequence[ToolResult]:
        words = Words()
        found: list[ToolResult] = []
        last = 0
        for span, content in entries(request, "contents"):
            parts = [part for _, part in objects(request, member(request, content, "parts"))]
            said = "\n".join(filter(None, (text_of(value(request, part, "text")) for part in parts)))
            if value(request, content, "role") == "model":
                last = span.start
                words.by_model(said)
            else:
                words.by_user(said)
            for part in parts:
                calls = member(request, part, either(part, "functionCall"))
                if calls is not None and begins(request, calls, b"{"):
                    call = members(request.text, calls)
                    words.calls[text_of(value(request, call, "name"))] = raw(request, member(request, call, "args"))
                answer = member(request, part, either(part, "functionResponse"))
                if answer is not None and begins(request, answer, b"{"):
                    result = _result(request, members(request.text, answer), words)
                    found += [result] if result else []
        return [replace(each, new=each.start > last) for each in found]


def _result(request: LlmRequest, answer: Fields, words: Words) -> ToolResult | None:
    response = member(request, answer, "response")
    if response is None or not begins(request, response, b"{"):
        return None
    said = members(request.text, response)
    if not said or ERROR in said:
        return None
    tool = text_of(value(request, answer, "name"))
    return ToolResult(tool=tool, texts=(_text(request, response, said),), asked=words.before(tool))


def _text(request: LlmRequest, response: Span, said: Fields) -> ResultText:
    """The text of a response with one member, or its JSON; the JSON of a response with more."""
    if len(said) > 1:
        return ResultText(text=_json(request, response), span=response, frame=FRAME)
    span = next(iter(said.values())).value
    text = read(request.text[slice(*span)]) if begins(request, span, b'"') else _json(request, span)
    return ResultText(text=text, span=span)


def _json(request: LlmRequest, span: Span) -> str:
    return request.text[slice(*span)].decode("utf-8")
