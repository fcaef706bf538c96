"""Support for `call_tool` in Responses: flat functions, calls as separate items, and answers that repeat the request's
tools."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from pegboard.gateways.llm.formats.call_tool import CallTool, Spot, Translator, unfit
from pegboard.gateways.llm.formats.call_translation import Reader, wrapped_text
from pegboard.gateways.llm.formats.insertion import (
    Fields,
    array_edits,
    begins,
    call_edits,
    in_string,
    member,
    objects,
    spot_in,
    staying,
    value,
)
from pegboard.gateways.llm.formats.json_reader import object_of, objects_of, place_of, text_of
from pegboard.gateways.llm.formats.json_spans import Edit, cut_members
from pegboard.gateways.llm.formats.openai_chat.call_tool import TEXTS, schema, with_breakpoint
from pegboard.gateways.llm.formats.openai_responses.namespaces import called_name, namespaced
from pegboard.gateways.llm.formats.protocol import LlmRequest
from pegboard.gateways.llm.formats.streams import EventTranslator, named_event
from pegboard.gateways.llm.formats.tool_arrays import tool_cuts
from pegboard.gateways.llm.formats.tool_search import Document
from pegboard.model import Tool

CONTINUING = ("previous_response_id", "conversation")


class ResponsesTranslator(EventTranslator):
    """Translates the events of a stream; ``translated`` handles whole responses, which the first and last events
    contain."""

    def __init__(self, reader: Reader, translated: Callable[[Document, Reader], Document]) -> None:
        super().__init__()
        self._reader = reader
        self._translated = translated
        self._held: dict[int, list[tuple[bytes, Document]]] = {}
        self._dropped = Counter[str]()

    def _passed(self, raw: bytes, event: Document | None) -> bytes:
        if event is None:
            return raw
        if isinstance(event.get("response"), dict):
            return self._sent(raw, event, event | {"response": self._translated(event["response"], self._reader)})
        index, item = place_of(event.get("output_index")), object_of(event.get("item"))
        if index is None:
            return self._sent(raw, event, event)
        is_ours = item.get("type") == "function_call" and item.get("name") == self._reader.own
        if event.get("type") == "response.output_item.added" and is_ours and not item.get("namespace"):
            self._held[index] = []
        if index not in self._held:
            return self._sent(raw, event, event)
        self._held[index].append((raw, event))
        return self._item(self._held.pop(index)) if event.get("type") == "response.output_item.done" else b""

    def _item(self, held: list[tuple[bytes, Document]]) -> bytes:
        """The four events of a call, with the sequence numbers of four of the buffered ones."""
        added, done = held[0][1], held[-1][1]
        item = object_of(done.get("item"))
        native = self._reader.native(text_of(item.get("arguments")))
        if native is None:
            self._dropped.update({"output_index": 1, "sequence_number": len(held)} if self._reader.drops else {})
            return b"" if self._reader.drops else b"".join(raw for raw, _ in held)
        inner = [event for _, event in held[1:-1]] or [done]
        named = names_of(native.name, self._reader)
        begun = {**object_of(added.get("item")), **named, "arguments": ""}
        at = {"item_id": item.get("id"), "output_index": done["output_index"]}
        kind = "response.function_call_arguments"
        events = (
            added | {"item": begun},
            _numbered({"type": f"{kind}.delta", **at, "delta": native.arguments}, inner[0]),
            _numbered({"type": f"{kind}.done", **at, "arguments": native.arguments, "name": named["name"]}, inner[-1]),
            done | {"item": {**item, **named, "arguments": native.arguments}},
        )
        return b"".join(named_event(self._closed_up(event)) for event in events)

    def _sent(self, raw: bytes, before: Document, event: Document) -> bytes:
        event = self._closed_up(event)
        return raw if event == before else named_event(event)

    def _closed_up(self, event: Document) -> Document:
        """The event with the numbers that it has without the events that were dropped."""
        if not self._dropped:
            return event
        numbers = {name: place_of(event.get(name)) for name in self._dropped}
        return event | {name: at - self._dropped[name] for name, at in numbers.items() if at is not None}


class ResponsesCallTool:
    takes_any_text = True

    def described(self, tool: Tool) -> Tool:
        return tool

    def closed(self, request: LlmRequest) -> str:
        if any(member(request, request.fields, name) for name in CONTINUING):
            return "the provider keeps the conversation"
        return "the provider keeps the answer" if request.stored else unfit(request)

    def offer(self, tool: CallTool) -> bytes:
        function = {"type": "function", "name": tool.name, "description": tool.description, "parameters": schema()}
        return with_breakpoint(function | {"strict": False}, tool.breakpoint)

    def tools(self, request: LlmRequest, entry: bytes) -> list[Edit]:
        if not any(tool.namespace for tool in request.tools):
            return array_edits(request, entry)
        kept = [place for place, tool in enumerate(request.tools) if tool.stays]
        start, end = request.fields["tools"].value
        if not kept:
            return [Edit(start, end, b"[" + entry + b"]")]
        return [*tool_cuts(request, kept), Edit(end - 1, end - 1, b"," + entry)]

    def calls(self, request: LlmRequest, own: str) -> list[Edit]:
        said = member(request, request.fields, "input")
        items = (fields for _, fields in objects(request, said)) if said and begins(request, said, b"[") else ()
        return [
            edit
            for item in items
            if value(request, item, "type") == "function_call"
            for edit in _call_edits(request, item, own)
        ]

    def spots(self, request: LlmRequest) -> Sequence[Spot]:
        said = member(request, request.fields, "input")
        if said is None:
            return []
        if begins(request, said, b'"'):
            return [in_string(said)] if text_of(value(request, request.fields, "input")).strip() else []
        items = (fields for _, fields in objects(request, said))
        users = (item for item in items if value(request, item, "role") == "user" and _is_message(request, item))
        spots = (spot_in(request, member(request, each, "content"), _input_text, TEXTS, "") for each in users)
        return [spot for spot in spots if spot is not None]

    def translated(self, answer: Document, reader: Reader) -> Document:
        said = answer.get("output")
        output = [native for item in objects_of(said or []) if (native := native_item(item, reader)) is not None]
        found = answer if output == said or said is None else answer | {"output": output}
        return with_tools(found, reader)

    def translator(self, reader: Reader) -> Translator:
        return ResponsesTranslator(reader, self.translated)


def native_item(item: Mapping[str, Any], reader: Reader) -> Mapping[str, Any] | None:
    """An item as the client gets it; None if it is dropped."""
    if item.get("type") != "function_call" or item.get("name") != reader.own or item.get("namespace"):
        return item
    native = reader.native(text_of(item.get("arguments")))
    if native is None:
        return None if reader.drops else item
    return {**item, **names_of(native.name, reader), "arguments": native.arguments}


def names_of(name: str, reader: Reader) -> Mapping[str, str]:
    """The members that name a tool in a call."""
    return namespaced(reader.offered).get(name, {"name": name})


def _call_edits(request: LlmRequest, call: Fields, own: str) -> Iterator[Edit]:
    """Turns a call into one of ``own``. A call in a namespace is one of the request's tools, or stays."""
    inside = value(request, call, "namespace")
    name = called_name({"name": value(request, call, "name"), "namespace": inside})
    if not inside or name in request.names:
        edits = call_edits(request, call, "arguments", own=own, name=name, wrap=wrapped_text, empty=b'""')
        yield from (*edits, *(cut_members(call, ["namespace"]) if name not in staying(request) else ()))


def with_tools(answer: Document, reader: Reader) -> Document:
    """The answer with the tools of the client's request if it repeats the gateway's."""
    repeated = answer.get("tools")
    if not isinstance(repeated, list) or all(tool.get("name") != reader.own for tool in objects_of(repeated)):
        return answer
    return answer | {"tools": json.loads(reader.offered)}


def _is_message(request: LlmRequest, item: Mapping[str, Any]) -> bool:
    return "type" not in item or value(request, item, "type") == "message"


def _input_text(text: str) -> Document:
    return {"type": "input_text", "text": text}


def _numbered(event: Document, like: Document) -> Document:
    return event | ({"sequence_number": like["sequence_number"]} if "sequence_number" in like else {})
