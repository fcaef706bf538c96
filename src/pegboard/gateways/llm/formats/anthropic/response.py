"""Reads Messages answers: one document, or events that build it."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from pegboard.gateways.llm.formats.protocol import AnswerStarted, Observation, ToolCalled
from pegboard.token_usage import TokenUsage


class _Usage(msgspec.Struct):
    input_tokens: int | None = None
    output_tokens: int | None = None
    cache_read_input_tokens: int | None = None
    cache_creation_input_tokens: int | None = None


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


EVENT = msgspec.json.Decoder(_Event)


class MessagesAnswer:
    """Reads the events of one answer. The first event has the input tokens, the last the output: each reported usage
    has both."""

    def __init__(self) -> None:
        self._usage: dict[str, int] = {}

    def __call__(self, data: bytes) -> Iterator[Observation]:
        event = EVENT.decode(data)
        message = event.message or event
        if message.id:
            yield AnswerStarted(id=message.id)
        for block in [*([event.content_block] if event.content_block else []), *(message.content or ())]:
            if block.type == "tool_use" and block.name:
                yield ToolCalled(name=block.name, id=block.id or "")
        if message.usage is not None:
            self._usage |= {name: n for name, n in msgspec.structs.asdict(message.usage).items() if n is not None}
            read = self._usage.get("cache_read_input_tokens", 0)
            written = self._usage.get("cache_creation_input_tokens", 0)
            yield TokenUsage(
                input=self._usage.get("input_tokens", 0) + read + written,
                output=self._usage.get("output_tokens", 0),
                cache_read=read,
                cache_write=written,
            )
