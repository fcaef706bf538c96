"""Reads Gemini answers: one document, or a stream of them."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from pegboard.gateways.llm.formats.protocol import AnswerStarted, Observation, ToolCalled
from pegboard.token_usage import TokenUsage


class _Call(msgspec.Struct):
    name: str | None = None
    id: str | None = None


class _AnswerPart(msgspec.Struct, rename="camel"):
    function_call: _Call | None = None


class _Content(msgspec.Struct):
    parts: list[_AnswerPart] | None = None


class _Candidate(msgspec.Struct):
    content: _Content | None = None


class _Usage(msgspec.Struct, rename="camel"):
    prompt_token_count: int | None = None
    tool_use_prompt_token_count: int | None = None
    candidates_token_count: int | None = None
    thoughts_token_count: int | None = None
    cached_content_token_count: int | None = None


class _Answer(msgspec.Struct, rename="camel"):
    candidates: list[_Candidate] | None = None
    usage_metadata: _Usage | None = None
    response_id: str | None = None


ANSWERS = msgspec.json.Decoder(_Answer | list[_Answer])


def read_answer(data: bytes) -> Iterator[Observation]:
    """The observations of a whole answer, a stream's event, or the array that a stream is without `alt=sse`."""
    answers = ANSWERS.decode(data)
    for answer in answers if isinstance(answers, list) else [answers]:
        if answer.response_id:
            yield AnswerStarted(id=answer.response_id)
        for candidate in answer.candidates or ():
            for part in (candidate.content and candidate.content.parts) or ():
                if part.function_call is not None and part.function_call.name:
                    yield ToolCalled(name=part.function_call.name, id=part.function_call.id or "")
        if (usage := answer.usage_metadata) is not None:
            yield TokenUsage(
                input=(usage.prompt_token_count or 0) + (usage.tool_use_prompt_token_count or 0),
                output=(usage.candidates_token_count or 0) + (usage.thoughts_token_count or 0),
                cache_read=usage.cached_content_token_count or 0,
            )
