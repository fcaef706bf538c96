"""Chat Completions: functions, calls whose arguments are a string, and messages with content as a string or parts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from pegboard.gateways.llm.codec import Request
from pegboard.gateways.llm.one_tool.calls import Reader, wrapped_text
from pegboard.gateways.llm.one_tool.chat_stream import ChatTranslator, call_of
from pegboard.gateways.llm.one_tool.places import Fields, array_edits, call_edits, member, objects, spot_in, value
from pegboard.gateways.llm.one_tool.strictness import unfit
from pegboard.gateways.llm.one_tool.wire import OneTool, Spot, Translator
from pegboard.gateways.llm.reading import object_of, objects_of
from pegboard.gateways.llm.spans import Edit, members
from pegboard.gateways.llm.way_back.edits import written
from pegboard.gateways.llm.way_back.wire import Document

TEXTS = ("text", "input_text", "output_text")


class ChatDialect:
    takes_any_text = True

    def closed(self, request: Request) -> str:
        return unfit(request)

    def offer(self, tool: OneTool) -> bytes:
        function = {"name": tool.name, "description": tool.description, "parameters": schema()}
        return with_breakpoint({"type": "function", "function": function}, tool.breakpoint)

    def tools(self, request: Request, entry: bytes) -> list[Edit]:
        return array_edits(request, entry)

    def calls(self, request: Request, own: str) -> list[Edit]:
        messages = objects(request, member(request, request.fields, "messages"))
        return [edit for _, message in messages for edit in _message_edits(request, message, own)]

    def spots(self, request: Request) -> Sequence[Spot]:
        messages = objects(request, member(request, request.fields, "messages"))
        said = (fields for _, fields in messages if value(request, fields, "role") == "user")
        spots = (spot_in(request, member(request, each, "content"), text_part, TEXTS, "") for each in said)
        return [spot for spot in spots if spot is not None]

    def translated(self, answer: Document, reader: Reader) -> Document:
        choices = [_choice(choice, reader) for choice in objects_of(answer.get("choices") or [])]
        return answer if choices == answer.get("choices") else answer | {"choices": choices}

    def translator(self, reader: Reader) -> Translator:
        return ChatTranslator(reader)


def schema() -> Document:
    """Of what `call_tool` takes."""
    properties = {
        "name": {"type": "string", "description": "The tool's name"},
        "arguments": {"type": "object", "description": "The tool's own arguments"},
    }
    return {"type": "object", "properties": properties, "required": ["name", "arguments"]}


def with_breakpoint(entry: Document, breakpoint_: bytes | None) -> bytes:
    data = written(entry)
    return data if breakpoint_ is None else data[:-1] + b',"cache_control":' + breakpoint_ + b"}"


def text_part(text: str) -> Document:
    return {"type": "text", "text": text}


def _message_edits(request: Request, message: Fields, own: str) -> Iterator[Edit]:
    for _, call in objects(request, member(request, message, "tool_calls")):
        yield from _function_edits(request, call, "function", own)
    yield from _function_edits(request, message, "function_call", own)
    name = value(request, message, "name")
    if value(request, message, "role") in ("tool", "function") and name is not None:
        yield Edit(*message["name"].value, written(own))


def _function_edits(request: Request, fields: Fields, key: str, own: str) -> Iterator[Edit]:
    span = member(request, fields, key)
    if span is not None:
        function = members(request.text, span)
        yield from call_edits(request, function, "arguments", own=own, wrap=wrapped_text, empty=b'""')


def _choice(choice: Mapping[str, Any], reader: Reader) -> Mapping[str, Any]:
    message = object_of(choice.get("message"))
    said = message.get("tool_calls")
    if not isinstance(said, list):
        return choice
    calls = [native for call in objects_of(said) if (native := call_of(call, reader)) is not None]
    without = {name: each for name, each in message.items() if name != "tool_calls"}
    return {**choice, "message": {**message, "tool_calls": calls} if calls else without}
