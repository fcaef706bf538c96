"""Cohere Chat v2 (`POST /v2/chat`; docs.cohere.com/reference/chat, read 2026-11-23).

Messages and tools are those of Chat Completions. `tool_choice` is `REQUIRED` or `NONE`, and cannot name a tool;
`strict_tools` needs tools. Streams have events of their own.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

from pegboard.catalog.ingest.provider_tools import tool_from_openai
from pegboard.gateways.llm.formats.cohere.response import CohereAnswer
from pegboard.gateways.llm.formats.json_reader import text_of, value_of
from pegboard.gateways.llm.formats.openai_chat.request import OpenAIChat
from pegboard.gateways.llm.formats.protocol import LlmRequest, Observer
from pegboard.gateways.llm.formats.streams import observer
from pegboard.gateways.llm.formats.tool_arrays import choice_of, rewritten
from pegboard.model import JsonObject, Tool

DEPENDENT = ("tool_choice", "strict_tools")


class CohereChat:
    name = "cohere"

    def parse(self, body: bytes, path: str) -> LlmRequest:
        request = OpenAIChat().parse(body, path)
        choice = text_of(value_of(request.text, request.fields, "tool_choice"))
        return replace(request, choice=choice_of(choice.lower() or None))

    def tool(self, definition: JsonObject) -> Tool | None:
        return tool_from_openai("", definition)

    def rewrite(self, request: LlmRequest, kept: Collection[int]) -> bytes:
        return rewritten(request, kept, array="tools", dependent=DEPENDENT)

    def narrow(self, request: LlmRequest, kept: Collection[int]) -> bytes | None:
        return None

    def defer(self, request: LlmRequest, loaded: Collection[int], kept: Collection[int]) -> bytes | None:
        return None

    def observe(self, content_type: str) -> Observer:
        return observer(content_type, CohereAnswer())
