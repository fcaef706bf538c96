"""Reads Messages answers: one document, or events that build it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import reduce

import msgspec

from pegboard.gateways.llm.formats.protocol import AnswerStarted, Observation, ToolCalled
from pegboard.token_usage import TokenUsage


class _Counts(msgspec.Struct):
    input_tokens: int | None = None
    output_tokens: int | None = None
    cache_read_input_tokens: int | None = None
    cache_creation_input_tokens: int | None = None


class _Iteration(_Counts):
    type: str | None = None


class _Usage(_Counts):
    """The counts are those of all iterations but compactions, which are billed as well (Compaction, Usage)."""

    iterations: list[_Iteration] | None = None


class _Block(msgspec.Struct):
    type: str = ""
    id: str | None = None
    name: str | None = None


class _Message(msgspec.Struct):
    id: str | None = None
    content: list[_Block] | None = None
    usage: _Usage | None = None


class _Event(_Message):
    """A streamed event, which contains a message, or the whole answer, which is one."""

    message: _Message | None = None
    content_block: _Block | None = None


COUNTS = _Counts.__struct_fields__
EVENT = msgspec.json.Decoder(_Event)


class MessagesAnswer:
    """Reads the events of one answer. The first event has the input tokens, the last the output: each reported usage
    has both."""

    def __init__(self) -> None:
        self._usage: dict[str, int] = {}
        self._compacted: list[_Iteration] = []

    def __call__(self, data: bytes) -> Iterator[Observation]:
        event = EVENT.decode(data)
        message = event.message or event
        if message.id:
            yield AnswerStarted(id=message.id)
        for block in [*([event.content_block] if event.content_block else []), *(message.content or ())]:
            if block.type == "tool_use" and block.name:
                yield ToolCalled(name=block.name, id=block.id or "")
        if message.usage is not None:
            counts = ((name, getattr(message.usage, name)) for name in COUNTS)
            self._usage |= {name: n for name, n in counts if n is not None}
            if message.usage.iterations is not None:
                self._compacted = [each for each in message.usage.iterations if each.type == "compaction"]
            compacted = tuple(map(_used, self._compacted))
            yield replace(reduce(TokenUsage.plus, compacted, _used(_Counts(**self._usage))), apart=compacted)


def _used(counts: _Counts) -> TokenUsage:
    read, written = counts.cache_read_input_tokens or 0, counts.cache_creation_input_tokens or 0
    return TokenUsage(
        input=(counts.input_tokens or 0) + read + written,
        output=counts.output_tokens or 0,
        cache_read=read,
        cache_write=written,
    )
