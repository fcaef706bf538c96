"""Support for `call_tool` in Cohere Chat v2: requests are those of Chat Completions, answers and streams are not."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pegboard.gateways.llm.formats.call_tool import Translator
from pegboard.gateways.llm.formats.call_translation import Reader
from pegboard.gateways.llm.formats.cohere.tool_search import call_events, renumbered
from pegboard.gateways.llm.formats.json_reader import object_of, objects_of, place_of, text_of, value_of
from pegboard.gateways.llm.formats.openai_chat.call_tool import ChatCallTool, call_of
from pegboard.gateways.llm.formats.protocol import LlmRequest
from pegboard.gateways.llm.formats.streams import EventTranslator
from pegboard.gateways.llm.formats.tool_search import Document


class CohereTranslator(EventTranslator):
    def __init__(self, reader: Reader) -> None:
        super().__init__()
        self._reader = reader
        self._held: dict[int, list[tuple[bytes, Mapping[str, Any]]]] = {}
        self._dropped = 0

    def _passed(self, raw: bytes, event: Document | None) -> bytes:
        kind = text_of(event.get("type")) if event else ""
        if event is None or not kind.startswith("tool-call-"):
            return raw
        index = place_of(event.get("index"))
        if index is None:
            return raw
        call = object_of(object_of(object_of(event.get("delta")).get("message")).get("tool_calls"))
        if kind == "tool-call-start" and object_of(call.get("function")).get("name") == self._reader.own:
            self._held[index] = []
        if index not in self._held:
            return renumbered(raw, event, index - self._dropped)
        self._held[index].append((raw, call))
        return self._call(index, self._held.pop(index)) if kind == "tool-call-end" else b""

    def _call(self, index: int, held: list[tuple[bytes, Mapping[str, Any]]]) -> bytes:
        (_, start), *_ = held
        arguments = "".join(text_of(object_of(call.get("function")).get("arguments")) for _, call in held)
        whole = {**start, "function": {**object_of(start.get("function")), "arguments": arguments}}
        native = call_of(whole, self._reader)
        if native is None:
            self._dropped += 1
            return b""
        if native is whole and not self._dropped:
            return b"".join(raw for raw, _ in held)
        return b"".join(call_events(index - self._dropped, native))


class CohereCallTool(ChatCallTool):
    def closed(self, request: LlmRequest) -> str:
        if value_of(request.text, request.fields, "strict_tools") is True:
            return "its tools are strict"
        return super().closed(request)

    def translated(self, answer: Document, reader: Reader) -> Document:
        message = object_of(answer.get("message"))
        said = message.get("tool_calls")
        if not isinstance(said, list):
            return answer
        calls = [native for call in objects_of(said) if (native := call_of(call, reader)) is not None]
        if calls == said:
            return answer
        without = {name: each for name, each in message.items() if name != "tool_calls"}
        return answer | {"message": without | ({"tool_calls": calls} if calls else {})}

    def translator(self, reader: Reader) -> Translator:
        return CohereTranslator(reader)
