"""Reads Cohere Chat v2 answers: one document, or events that build it (docs.cohere.com/v2/docs/streaming)."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from pegboard.gateways.llm.formats.protocol import AnswerStarted, Observation, ToolCalled
from pegboard.token_usage import TokenUsage


class _Function(msgspec.Struct):
    name: str | None = None


class _Call(msgspec.Struct):
    id: str | None = None
    function: _Function | None = None


class _Message(msgspec.Struct):
    tool_calls: list[_Call] | _Call | None = None


class _Tokens(msgspec.Struct):
    input_tokens: float | None = None
    output_tokens: float | None = None


class _Usage(msgspec.Struct):
    billed_units: _Tokens | None = None
    tokens: _Tokens | None = None
    cached_tokens: float | None = None


class _Delta(msgspec.Struct):
    message: _Message | None = None
    usage: _Usage | None = None


class _Event(_Delta):
    """An event, whose ``delta`` has what a whole answer has itself."""

    id: str | None = None
    type: str = ""
    delta: _Delta | None = None


EVENT = msgspec.json.Decoder(_Event)
STARTED = "tool-call-start"
"""The event that names a call; `tool-call-delta` continues its arguments."""


class CohereAnswer:
    """Reads the events of one answer."""

    def __call__(self, data: bytes) -> Iterator[Observation]:
        if data == b"[DONE]":
            return
        event = EVENT.decode(data)
        if event.id:
            yield AnswerStarted(id=event.id)
        said = event.delta or event
        if said.message is not None and event.type in ("", STARTED):
            calls = said.message.tool_calls or []
            for call in calls if isinstance(calls, list) else [calls]:
                if call.function is not None and call.function.name:
                    yield ToolCalled(name=call.function.name, id=call.id or "")
        if said.usage is not None and (said.usage.tokens or said.usage.billed_units) is not None:
            yield _counted(said.usage)


def _counted(usage: _Usage) -> TokenUsage:
    """The tokens that are billed: those of Cohere's own instructions, which are among all tokens and may be read from a
    cache, are not."""
    billed, tokens = usage.billed_units or _Tokens(), usage.tokens or _Tokens()
    given = tokens.input_tokens if billed.input_tokens is None else billed.input_tokens
    made = tokens.output_tokens if billed.output_tokens is None else billed.output_tokens
    read = min(int(usage.cached_tokens or 0), int(given or 0))
    return TokenUsage(input=int(given or 0), output=int(made or 0), cache_read=read)
