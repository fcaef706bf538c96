"""Reads Converse answers: one document, or the payloads of a stream's events."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from pegboard.gateways.llm.formats.bedrock.event_frames import FrameObserver
from pegboard.gateways.llm.formats.protocol import Observation, Observer, ToolCalled
from pegboard.gateways.llm.formats.streams import observer
from pegboard.token_usage import TokenUsage

STREAM = "application/vnd.amazon.eventstream"


class _ToolUse(msgspec.Struct, rename="camel"):
    name: str | None = None
    tool_use_id: str | None = None


class _Block(msgspec.Struct, rename="camel"):
    tool_use: _ToolUse | None = None


class _Message(msgspec.Struct):
    content: list[_Block] | None = None


class _Output(msgspec.Struct):
    message: _Message | None = None


class _Usage(msgspec.Struct, rename="camel"):
    input_tokens: int | None = None
    output_tokens: int | None = None
    cache_read_input_tokens: int | None = None
    cache_write_input_tokens: int | None = None


class _Answer(msgspec.Struct):
    """A whole answer, or the payload of an event: `contentBlockStart` has ``start``, `metadata` has ``usage``."""

    output: _Output | None = None
    start: _Block | None = None
    usage: _Usage | None = None


ANSWER = msgspec.json.Decoder(_Answer)


def converse_answer(data: bytes) -> Iterator[Observation]:
    """Input tokens leave out those read from and written to the cache."""
    answer = ANSWER.decode(data)
    message = answer.output.message if answer.output else None
    for block in [*([answer.start] if answer.start else []), *((message.content or ()) if message else ())]:
        if block.tool_use is not None and block.tool_use.name:
            yield ToolCalled(name=block.tool_use.name, id=block.tool_use.tool_use_id or "")
    if answer.usage is not None:
        read, written = answer.usage.cache_read_input_tokens or 0, answer.usage.cache_write_input_tokens or 0
        yield TokenUsage(
            input=(answer.usage.input_tokens or 0) + read + written,
            output=answer.usage.output_tokens or 0,
            cache_read=read,
            cache_write=written,
        )


def bedrock_observer(content_type: str) -> Observer:
    """The observer for an answer of this Content-Type."""
    if content_type.partition(";")[0].strip().lower() == STREAM:
        return FrameObserver(converse_answer)
    return observer(content_type, converse_answer)
