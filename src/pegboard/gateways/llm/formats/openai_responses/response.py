"""Reads Responses answers: one document, or events that end with it."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from pegboard.gateways.llm.formats.openai_responses.namespaces import qualified
from pegboard.gateways.llm.formats.protocol import AnswerStarted, Observation, ToolCalled
from pegboard.token_usage import TokenUsage

CALLS = ("function_call", "custom_tool_call")


class _InputDetails(msgspec.Struct):
    cached_tokens: int | None = None
    cache_write_tokens: int | None = None


class _Usage(msgspec.Struct):
    input_tokens: int | None = None
    output_tokens: int | None = None
    input_tokens_details: _InputDetails | None = None


class _Item(msgspec.Struct):
    type: str = ""
    name: str | None = None
    namespace: str | None = None
    call_id: str | None = None


class _Response(msgspec.Struct):
    id: str | None = None
    output: list[_Item] | None = None
    usage: _Usage | None = None


class _Event(_Response):
    """A streamed event, which contains a response, or the whole answer, which is one."""

    response: _Response | None = None
    item: _Item | None = None


EVENT = msgspec.json.Decoder(_Event)


class ResponsesAnswer:
    """Reads the events of one answer; each call is reported once, with the event that names it."""

    def __init__(self) -> None:
        self._started = False
        self._told: set[str] = set()

    def __call__(self, data: bytes) -> Iterator[Observation]:
        if data == b"[DONE]":
            return
        event = EVENT.decode(data)
        response = event.response or event
        if response.id and not self._started and (event.response is not None or event.output is not None):
            self._started = True
            yield AnswerStarted(id=response.id)
        for item in [*([event.item] if event.item else []), *(response.output or ())]:
            if item.type in CALLS and item.name and (not item.call_id or item.call_id not in self._told):
                self._told.add(item.call_id or "")
                yield ToolCalled(name=qualified(item.name, item.namespace or ""), id=item.call_id or "")
        if response.usage is not None:
            details = response.usage.input_tokens_details
            yield TokenUsage(
                input=response.usage.input_tokens or 0,
                output=response.usage.output_tokens or 0,
                cache_read=(details.cached_tokens or 0) if details else 0,
                cache_write=(details.cache_write_tokens or 0) if details else 0,
            )
