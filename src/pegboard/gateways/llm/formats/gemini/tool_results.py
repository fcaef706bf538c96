"""Results of tools in Gemini: responses of functions, which are JSON objects."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from pegboard.gateways.llm.formats.gemini.request import either
from pegboard.gateways.llm.formats.insertion import Fields, begins, member, objects, value
from pegboard.gateways.llm.formats.json_reader import read, text_of
from pegboard.gateways.llm.formats.json_spans import Span, members
from pegboard.gateways.llm.formats.protocol import LlmRequest
from pegboard.gateways.llm.formats.tool_results import ResultText, ToolResult, entries
from pegboard.wire_formats import Provider

ERROR = "error"
FRAME = (b'{"result":', b"}")


class ContentsResults:
    definitions: Provider = "gemini"

    def results(self, request: LlmRequest) -> Sequence[ToolResult]:
        found: list[ToolResult] = []
        last = 0
        for span, content in entries(request, "contents"):
            if value(request, content, "role") == "model":
                last = span.start
            for _, part in objects(request, member(request, content, "parts")):
                answer = member(request, part, either(part, "functionResponse"))
                if answer is not None and begins(request, answer, b"{"):
                    result = _result(request, members(request.text, answer))
                    found += [result] if result else []
        return [replace(each, new=each.start > last) for each in found]


def _result(request: LlmRequest, answer: Fields) -> ToolResult | None:
    response = member(request, answer, "response")
    if response is None or not begins(request, response, b"{"):
        return None
    said = members(request.text, response)
    if not said or ERROR in said:
        return None
    return ToolResult(tool=text_of(value(request, answer, "name")), texts=(_text(request, response, said),))


def _text(request: LlmRequest, response: Span, said: Fields) -> ResultText:
    """The text of a response with one member, or its JSON; the JSON of a response with more."""
    if len(said) > 1:
        return ResultText(text=_json(request, response), span=response, frame=FRAME)
    span = next(iter(said.values())).value
    text = read(request.text[slice(*span)]) if begins(request, span, b'"') else _json(request, span)
    return ResultText(text=text, span=span)


def _json(request: LlmRequest, span: Span) -> str:
    return request.text[slice(*span)].decode("utf-8")
