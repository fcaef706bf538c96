"""Chat Completions: an extra function, its calls, and one completion of several."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import reduce
from typing import Any

from pegboard.gateways.llm.codec import Request
from pegboard.gateways.llm.reading import object_of, objects_of, text_of, value_of
from pegboard.gateways.llm.way_back.chat_stream import ChatJoiner
from pegboard.gateways.llm.way_back.edits import APART, appended, schema, summed
from pegboard.gateways.llm.way_back.wire import Asked, Document, Exchange, Hides, Joiner, SearchTool

THOUGHTS = ("reasoning_content", "reasoning")
"""Where servers that tell the model's thoughts have them."""


class ChatWayBack:
    def closed(self, request: Request, query: str) -> str:
        if request.layout != "tools":
            return "it offers functions of old"
        if value_of(request.text, request.fields, "n") not in (None, 1):
            return "it asks for several answers"
        return ""

    def offer(self, body: bytes, tool: SearchTool) -> bytes:
        function = {"name": tool.name, "description": tool.description, "parameters": schema()}
        return appended(body, "tools", [{"type": "function", "function": function}])

    def calls(self, answer: Document) -> list[Asked]:
        return [_asked(call) for call in _calls(_message(answer))]

    def waits(self, answer: Document) -> bool:
        choices = objects_of(answer.get("choices") or [])
        return bool(choices) and choices[0].get("finish_reason") not in ("length", "content_filter")

    def continued(self, body: bytes, exchanges: Sequence[Exchange]) -> bytes:
        return appended(body, "messages", [said for each in exchanges for said in _said(each)])

    def merged(self, answers: Sequence[Document], hides: Hides) -> Document:
        last = answers[-1]
        choices = objects_of(last.get("choices") or [])
        if not choices:
            return last
        message = _joined([_message(answer) for answer in answers])
        calls = [call for call in _calls(message) if not hides(_asked(call).name)]
        if "tool_calls" in message:
            del message["tool_calls"]
            message |= {"tool_calls": calls} if calls else {}
        reason = ended(choices[0].get("finish_reason"), shown=bool(calls))
        first = {name: answers[0][name] for name in ("id", "created") if name in answers[0]}
        used = reduce(summed, (answer.get("usage") for answer in answers))
        whole = {"choices": [{**choices[0], "message": message, "finish_reason": reason}]}
        return last | first | whole | ({} if used is None else {"usage": used})

    def joiner(self) -> Joiner:
        return ChatJoiner()


def ended(reason: Any, *, shown: bool) -> Any:
    """Why an answer ended, where the calls it ended for may be none of the client's."""
    return "stop" if reason == "tool_calls" and not shown else reason


def _joined(messages: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """The last message, with all that was said before it."""
    message = dict(messages[-1])
    for name, apart in (("content", APART), *((name, "") for name in THOUGHTS)):
        said = [text for each in messages if (text := text_of(each.get(name)))]
        message |= {name: apart.join(said)} if said else {}
    return message


def _message(answer: Document) -> Mapping[str, Any]:
    choices = objects_of(answer.get("choices") or [])
    return object_of(choices[0].get("message")) if choices else {}


def _calls(message: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    return objects_of(message.get("tool_calls") or [])


def _asked(call: Mapping[str, Any]) -> Asked:
    """A function's arguments are JSON, a custom tool's input is any text."""
    of = object_of(call.get("function")) or object_of(call.get("custom"))
    arguments = text_of(of.get("arguments")) or text_of(of.get("input"))
    return Asked(name=text_of(of.get("name")), arguments=arguments, id=text_of(call.get("id")))


def _said(exchange: Exchange) -> list[Mapping[str, Any]]:
    results = [{"role": "tool", "tool_call_id": call.id, "content": text} for call, text in exchange.results]
    return [_message(exchange.answer), *results]
