"""OpenAI Responses: flat tools, and a conversation of items that the provider may keep in part."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Any

import msgspec

from pegboard.catalog.ingest.provider_tools import tool_from_openai
from pegboard.gateways.llm.formats.contents import parts_of, result_of
from pegboard.gateways.llm.formats.json_reader import object_of, objects_of, text_of, value_of
from pegboard.gateways.llm.formats.json_spans import Member, Span
from pegboard.gateways.llm.formats.openai_chat.request import deployed
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
REFERENCE = "item_reference"
"""An item of an earlier answer by its id alone: OpenAI keeps the answer."""


class _Kind(msgspec.Struct):
    type: str = "function"


KIND = msgspec.json.Decoder(_Kind)


class OpenAIResponses:
    name = "openai_responses"

    def parse(self, body: bytes, path: str) -> LlmRequest:
        return deployed(parsed(body, _request), path)

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
    unnamed = _unnamed(items, len(messages))
    messages += _messages(items)
    choice = choice_of(value_of(text, fields, "tool_choice"))
    return LlmRequest(
        body=text,
        text=text,
        fields=fields,
        tools=_offered(text, given(text, fields, "tools"), choice),
        turn=Turn(messages=tuple(messages)),
        choice=choice,
        called=frozenset(called_name(item) for item in items if item.get("type") in CALLS) - {""},
        unnamed=unnamed,
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
        kind = _kind(item)
        if kind == "message":
            yield Message(role=ROLES.get(text_of(item.get("role")), "system"), parts=parts_of(item.get("content")))
        elif kind in CALLS:
            yield Message(role="assistant", parts=(Part(kind="tool_call", tool=called_name(item)),))
        elif kind in RESULTS:
            yield Message(role="tool", parts=result_of(item.get("output")))
        elif kind == REFERENCE:
            yield Message(role="assistant")


def _kind(item: Mapping[str, Any]) -> str:
    """The type, which messages and references may leave out."""
    return text_of(item.get("type")) or (REFERENCE if "id" in item and "role" not in item else "message")


def _unnamed(items: Iterable[Mapping[str, Any]], before: int) -> dict[str, int]:
    """The calls that are there by reference, by the ids that their results give: the place of the last reference before
    the result among the messages, of which ``before`` precede the items."""
    found: dict[str, int] = {}
    named: set[str] = set()
    place, last = before, None
    for item in items:
        kind, call = _kind(item), text_of(item.get("call_id"))
        if kind in CALLS:
            named.add(call)
        elif kind == REFERENCE:
            last = place
        elif kind in RESULTS and last is not None and call and call not in named:
            found[call] = last
        place += kind in (*CALLS, *RESULTS, "message", REFERENCE)
    return found
