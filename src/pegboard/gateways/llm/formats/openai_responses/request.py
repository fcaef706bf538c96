"""OpenAI Responses: flat tools, and a conversation of items that the provider may keep in part."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Any

import msgspec

from pegboard.catalog.ingest.provider_tools import tool_from_openai
from pegboard.gateways.llm.formats.contents import parts_of, result_of
from pegboard.gateways.llm.formats.json_reader import object_of, objects_of, text_of, value_of
from pegboard.gateways.llm.formats.json_spans import Member, Span
from pegboard.gateways.llm.formats.openai_responses.namespaces import (
    called_name,
    loaded_tools,
    offered_entries,
    offered_tools,
)
from pegboard.gateways.llm.formats.openai_responses.response import CALLS, ResponsesAnswer
from pegboard.gateways.llm.formats.protocol import LlmRequest, Observer, OfferedTool, ToolChoice, parsed
from pegboard.gateways.llm.formats.streams import observer
from pegboard.gateways.llm.formats.tool_arrays import choice_of, given, narrowed, rewritten
from pegboard.model import JsonObject, Message, Part, Role, Tool, Turn

ROLES: Mapping[str, Role] = {"user": "user", "assistant": "assistant"}
"""Other roles (`system`, `developer`) are instructions."""
DEPENDENT = ("tool_choice", "parallel_tool_calls")
RESULTS = ("function_call_output", "custom_tool_call_output")


class _Kind(msgspec.Struct):
    type: str = "function"


KIND = msgspec.json.Decoder(_Kind)


class OpenAIResponses:
    name = "openai_responses"

    def parse(self, body: bytes, path: str) -> LlmRequest:
        return parsed(body, _request)

    def tool(self, definition: JsonObject) -> Tool | None:
        return tool_from_openai("", definition)

    def rewrite(self, request: LlmRequest, kept: Collection[int]) -> bytes:
        return rewritten(request, kept, array="tools", dependent=DEPENDENT)

    def narrow(self, request: LlmRequest, kept: Collection[int]) -> bytes | None:
        tools = [request.tools[place] for place in kept]
        if any(tool.namespace for tool in request.tools):
            return None
        if any(KIND.decode(tool.definition).type != "function" for tool in tools):
            return None
        return narrowed(request, [{"type": "function", "name": tool.name} for tool in tools], nested=False)

    def observe(self, content_type: str) -> Observer:
        return observer(content_type, ResponsesAnswer())


def _request(text: bytes, fields: dict[str, Member]) -> LlmRequest:
    instructions, said = value_of(text, fields, "instructions"), value_of(text, fields, "input")
    items = objects_of(said)
    messages = [Message(role="system", parts=parts_of(instructions))] if instructions else []
    if isinstance(said, str):
        messages.append(Message(role="user", parts=parts_of(said)))
    choice = choice_of(value_of(text, fields, "tool_choice"))
    return LlmRequest(
        body=text,
        text=text,
        fields=fields,
        tools=_offered(text, given(text, fields, "tools"), choice),
        turn=Turn(messages=(*messages, *_messages(items))),
        choice=choice,
        called=frozenset(called_name(item) for item in items if item.get("type") in CALLS) - {""},
        referenced=frozenset(loaded_tools(items)),
        model=text_of(value_of(text, fields, "model")),
        streams=value_of(text, fields, "stream") is True,
        continues=_continues(text, fields),
        stored=value_of(text, fields, "store") is not False,
    )


def _continues(text: bytes, fields: Mapping[str, Member]) -> str | None:
    """The id of the earlier answer or conversation that stands for this request's history."""
    conversation = value_of(text, fields, "conversation")
    named = object_of(conversation).get("id", conversation)
    return text_of(value_of(text, fields, "previous_response_id")) or text_of(named) or None


def _offered(text: bytes, array: Span | None, choice: ToolChoice) -> tuple[OfferedTool, ...]:
    """The tools; namespaces stay whole if the choice names tools: how it names those inside is not documented."""
    return offered_tools(text, array) if choice.names is None else offered_entries(text, array)


def _messages(items: Iterable[Mapping[str, Any]]) -> Iterator[Message]:
    for item in items:
        kind = item.get("type", "message")
        if kind == "message":
            yield Message(role=ROLES.get(text_of(item.get("role")), "system"), parts=parts_of(item.get("content")))
        elif kind in CALLS:
            yield Message(role="assistant", parts=(Part(kind="tool_call", tool=called_name(item)),))
        elif kind in RESULTS:
            yield Message(role="tool", parts=result_of(item.get("output")))
