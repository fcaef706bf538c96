"""Messages: an extra tool, its `tool_use` blocks, and one message of several."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from functools import reduce
from typing import Any

from pegboard.gateways.llm.codec import Request
from pegboard.gateways.llm.reading import objects_of, text_of
from pegboard.gateways.llm.way_back.anthropic_stream import MessagesJoiner
from pegboard.gateways.llm.way_back.edits import appended, schema, summed
from pegboard.gateways.llm.way_back.wire import Asked, Document, Exchange, Hides, Joiner, SearchTool


class MessagesWayBack:
    def closed(self, request: Request, query: str) -> str:
        if request.turn.messages and request.turn.messages[-1].role == "assistant":
            return "the answer goes on from what the caller wrote of it"
        return ""

    def offer(self, body: bytes, tool: SearchTool) -> bytes:
        return appended(body, "tools", [{"name": tool.name, "description": tool.description, "input_schema": schema()}])

    def calls(self, answer: Document) -> list[Asked]:
        return [asked(block) for block in _blocks(answer) if block.get("type") == "tool_use"]

    def waits(self, answer: Document) -> bool:
        return answer.get("stop_reason") == "tool_use"

    def continued(self, body: bytes, exchanges: Sequence[Exchange]) -> bytes:
        return appended(body, "messages", [said for each in exchanges for said in _said(each)])

    def merged(self, answers: Sequence[Document], hides: Hides) -> Document:
        last = answers[-1]
        if not isinstance(last.get("content"), list):
            return last
        before = [block for answer in answers[:-1] for block in _blocks(answer) if block.get("type") != "tool_use"]
        shown = [block for block in _blocks(last) if not _is_hidden(block, hides)]
        reason = ended(last.get("stop_reason"), shown=any(block.get("type") == "tool_use" for block in shown))
        used = reduce(summed, (answer.get("usage") for answer in answers))
        first = {"id": answers[0]["id"]} if "id" in answers[0] else {}
        return last | first | {"content": [*before, *shown], "stop_reason": reason, "usage": used}

    def joiner(self) -> Joiner:
        return MessagesJoiner()


def asked(block: Mapping[str, Any]) -> Asked:
    return Asked(name=text_of(block.get("name")), arguments=json.dumps(block.get("input")), id=text_of(block.get("id")))


def ended(reason: Any, *, shown: bool) -> Any:
    """Why an answer ended, where the calls it ended for may be none of the client's."""
    return "end_turn" if reason == "tool_use" and not shown else reason


def _is_hidden(block: Mapping[str, Any], hides: Hides) -> bool:
    return block.get("type") == "tool_use" and hides(text_of(block.get("name")))


def _blocks(answer: Document) -> list[Mapping[str, Any]]:
    return objects_of(answer.get("content") or [])


def _said(exchange: Exchange) -> list[Document]:
    """The answer with its signed thoughts as they are; a text without any letter may be said, and not be sent."""
    said = [
        block for block in _blocks(exchange.answer) if block.get("type") != "text" or text_of(block["text"]).strip()
    ]
    results = [{"type": "tool_result", "tool_use_id": call.id, "content": text} for call, text in exchange.results]
    return [{"role": "assistant", "content": said}, {"role": "user", "content": results}]
