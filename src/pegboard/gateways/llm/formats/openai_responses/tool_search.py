"""Tool search in Responses: an extra function, its call items, and several responses as one, also when streamed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import reduce
from typing import Any

from pegboard.gateways.llm.formats.edits import appended, fields_of, loaded, schema, summed, with_value, written
from pegboard.gateways.llm.formats.json_reader import object_of, objects_of, place_of, text_of, value_of
from pegboard.gateways.llm.formats.json_spans import Edit, splice
from pegboard.gateways.llm.formats.openai_responses.namespaces import OWN, called_name
from pegboard.gateways.llm.formats.protocol import LlmRequest
from pegboard.gateways.llm.formats.streams import Frames, named_event
from pegboard.gateways.llm.formats.tool_search import Document, FunctionCall, Hides, Joiner, SearchExchange, SearchTool

FUNCTIONS = ("function_call", "custom_tool_call")
BEGINNINGS = ("response.created", "response.queued", "response.in_progress")
ENDS = ("response.completed", "response.incomplete", "response.failed")
DONE = b"[DONE]"
SEARCH_CALL = "tool_search_call"
"""The type of the model's call of `tool_search`, and the name of that call here."""

WITH_ID = frozenset(
    {
        "code_interpreter_call",
        "computer_call",
        "file_search_call",
        "image_generation_call",
        "local_shell_call",
        "local_shell_call_output",
        "mcp_approval_request",
        "mcp_call",
        "mcp_list_tools",
        "program",
        "program_output",
        "reasoning",
        "web_search_call",
    }
)
"""The types of items whose `id` is required in a request (`ResponseInputItemParam` of OpenAI's Python SDK)."""


@dataclass(slots=True)
class ResponsesRound:
    """One answer received so far: the positions of its items at the client, and the events that end it.

    ``thoughts`` are the events of reasoning items that are not shown yet, ``unshown`` the indexes of those items;
    ``whole`` are its complete items: some servers leave them out at the end.
    """

    places: dict[int, int | None] = field(default_factory=dict)
    thoughts: list[tuple[bytes, Document]] = field(default_factory=list)
    unshown: set[int] = field(default_factory=set)
    late: dict[int, Mapping[str, Any]] = field(default_factory=dict)
    whole: dict[int, Mapping[str, Any]] = field(default_factory=dict)
    tail: list[tuple[bytes, Document | None]] = field(default_factory=list)
    response: Document | None = None


class ResponsesJoiner:
    """Joins answers under the first one's id, which begins the stream at once.

    Thoughts of an answer that the provider keeps wait for the item that they led to, unless the client continues by
    ids: sent back without the search that they led to, they would be refused.
    """

    def __init__(self) -> None:
        self._rounds = 0
        self._number: int | None = None
        self._used: Any = None
        self._begun: Document = {}
        self._output: dict[int, Mapping[str, Any]] = {}
        self._next = 0
        self._frames = Frames()
        self._round = ResponsesRound()

    def begin(self, held: Hides) -> None:
        if self._rounds:
            self._used = summed(self._used, object_of(self._round.response).get("usage"))
        self._rounds += 1
        self._held = held
        self._frames = Frames()
        self._round = ResponsesRound()

    def feed(self, piece: bytes) -> bytes:
        return b"".join(self._passed(raw, data) for raw, data in self._frames.feed(piece))

    def close(self) -> Document | None:
        for raw, data in self._frames.finish():
            if passing := self._passed(raw, data):
                self._round.tail.append((passing, None))
        return self._round.response

    def finish(self, hides: Hides) -> bytes:
        late = self._thought() + b"".join(self._late_calls(hides))
        return late + b"".join(self._ended(raw, event, hides) for raw, event in self._round.tail)

    def failed(self, body: bytes) -> bytes:
        error = object_of((loaded(body) or {}).get("error"))
        told = {"code": "server_error", "message": text_of(error.get("message")) or body.decode("utf-8", "replace")}
        output = [item for _, item in sorted(self._output.items())]
        response = self._begun | {"status": "failed", "error": told, "output": output}
        return self._event({"type": "response.failed", "sequence_number": 0, "response": response})

    def _passed(self, raw: bytes, data: bytes) -> bytes:
        event = loaded(data)
        if data == DONE:
            self._round.tail.append((raw, None))
        elif event is None:
            return raw
        elif event.get("type") in BEGINNINGS:
            return self._beginning(raw, event)
        elif event.get("type") in ENDS:
            response = dict(object_of(event.get("response")))
            if not response.get("output") and self._round.whole:
                response["output"] = [item for _, item in sorted(self._round.whole.items())]
            self._round.response = response
            self._round.tail.append((raw, event))
        elif place_of(event.get("output_index")) is not None and text_of(event.get("type")):
            return self._item(raw, event)
        else:
            return self._event(event, raw, event)
        return b""

    def _beginning(self, raw: bytes, event: Document) -> bytes:
        if self._rounds > 1:
            return b""
        self._begun = unseen(dict(object_of(event.get("response"))), self._held)
        return self._event(event | {"response": self._begun}, raw, event)

    def _item(self, raw: bytes, before: Document) -> bytes:
        """What is shown for an event of an item."""
        index, added = before["output_index"], before["type"] == "response.output_item.added"
        if added and object_of(before.get("item")).get("type") == "reasoning" and self._hides_thoughts:
            self._round.unshown.add(index)
        if before["type"] == "response.output_item.done":
            self._round.whole[index] = object_of(before.get("item"))
        if index in self._round.unshown:
            self._round.thoughts.append((raw, before))
            return b""
        thoughts = self._thought() if added and not self._waits(object_of(before.get("item"))) else b""
        return thoughts + self._shown(raw, before)

    @property
    def _hides_thoughts(self) -> bool:
        return self._begun.get("store") is True and not self._begun.get("previous_response_id")

    def _thought(self) -> bytes:
        """The thoughts that waited for an item, which the client gets."""
        thoughts, self._round.thoughts, self._round.unshown = self._round.thoughts, [], set()
        return b"".join(self._shown(raw, event) for raw, event in thoughts)

    def _waits(self, item: Mapping[str, Any]) -> bool:
        """Whether it is a call that is buffered."""
        return is_call(item) and self._held(asked(item).name)

    def _shown(self, raw: bytes, before: Document) -> bytes:
        index, item = before["output_index"], seen_by_client(object_of(before.get("item")))
        event = before | {"item": item} if "item" in before else before
        if event["type"] == "response.output_item.added":
            self._round.places[index] = self._place(item)
        place = self._round.places.get(index)
        if event["type"] == "response.output_item.done":
            if place is None:
                self._round.late[index] = item
            else:
                self._output[place] = item
        return b"" if place is None else self._event(event | {"output_index": place}, raw, before)

    def _place(self, item: Mapping[str, Any]) -> int | None:
        if self._waits(item):
            return None
        self._next += 1
        return self._next - 1

    def _late_calls(self, hides: Hides) -> Iterator[bytes]:
        for item in self._round.late.values():
            if not is_call(item) or hides(asked(item).name):
                continue
            place, self._next = self._next, self._next + 1
            self._output[place] = item
            name = "input" if "input" in item else "arguments"
            kind = f"{text_of(item.get('type'))}_{name}"
            for event in (
                {"type": "response.output_item.added", "item": {**item, name: "", "status": "in_progress"}},
                {"type": f"response.{kind}.delta", "item_id": item.get("id"), "delta": item.get(name)},
                {"type": f"response.{kind}.done", "item_id": item.get("id"), name: item.get(name)},
                {"type": "response.output_item.done", "item": item},
            ):
                yield self._event({**event, "sequence_number": 0, "output_index": place})

    def _ended(self, raw: bytes, event: Document | None, hides: Hides) -> bytes:
        """The complete response with the output and usage of all answers, under the first id."""
        if event is None:
            return raw
        response = unseen(dict(object_of(event.get("response"))), hides)
        for index, item in enumerate(objects_of(response.get("output") or [])):
            if (place := self._round.places.get(index)) is not None:
                self._output[place] = seen_by_client(item)
        output = [item for _, item in sorted(self._output.items())]
        response |= {"output": output, "usage": summed(self._used, response.get("usage"))}
        response |= {"id": self._begun["id"]} if "id" in self._begun else {}
        return self._event(event | {"response": response}, raw, event)

    def _event(self, event: Document, raw: bytes = b"", before: Document | None = None) -> bytes:
        """The event with the next sequence number; the original bytes if nothing changed."""
        if (number := place_of(event.get("sequence_number"))) is not None:
            number = number if self._number is None else self._number
            event, self._number = event | {"sequence_number": number}, number + 1
        if event == before:
            return raw
        return named_event(event)


class ResponsesToolSearch:
    def closed(self, request: LlmRequest, query: str) -> str:
        """A `conversation` of the provider's would contain each round once more."""
        if value_of(request.text, request.fields, "conversation") is not None:
            return "the provider adds each answer to a conversation"
        return "the answer comes later" if value_of(request.text, request.fields, "background") is True else ""

    def offer(self, body: bytes, tool: SearchTool) -> bytes:
        function = {
            "type": "function",
            "name": tool.name,
            "description": tool.description,
            "parameters": schema(tool.kinds),
        }
        return appended(body, "tools", [function | {"strict": False}])

    def extended(self, body: bytes, definitions: Sequence[bytes]) -> bytes:
        return appended(body, "tools", definitions)

    def calls(self, answer: Document) -> list[FunctionCall]:
        return [asked(item) for item in called_items(answer)]

    def waits(self, answer: Document) -> bool:
        return answer.get("status") == "completed"

    def continued(self, body: bytes, exchanges: Sequence[SearchExchange]) -> bytes:
        """A stored answer is continued by its id, so that its thoughts are kept."""
        last = exchanges[-1]
        if is_stored(last.answer):
            results = [item for item in _said(last) if text_of(item.get("type")).endswith("_output")]
            body = with_value(body, "input", written(results))
            return with_value(body, "previous_response_id", written(last.answer["id"]))
        return appended(listed_input(body), "input", [item for each in exchanges for item in _said(each)])

    def merged(self, answers: Sequence[Document], hides: Hides) -> Document:
        last = answers[-1]
        if not isinstance(last.get("output"), list):
            return last
        before = [item for answer in answers[:-1] for item in _others(answer)]
        if is_stored(last):
            before = [item for item in before if item.get("type") != "reasoning"]  # parted from the call it led to
        shown = [seen_by_client(item) for item in _items(last) if not (is_call(item) and hides(asked(item).name))]
        used = reduce(summed, (answer.get("usage") for answer in answers))
        named = last if is_stored(last) else answers[0]
        first = {"id": named["id"]} if "id" in named else {}
        billed = {} if used is None else {"usage": used}
        return unseen(last, hides) | first | {"output": [*before, *shown]} | billed

    def joiner(self) -> Joiner:
        return ResponsesJoiner()


def is_stored(answer: Document) -> bool:
    """Whether the provider has kept an answer, which can be continued by its id."""
    return answer.get("store") is True and bool(text_of(answer.get("id")))


def _items(answer: Document) -> list[Mapping[str, Any]]:
    return objects_of(answer.get("output") or [])


def called_items(answer: Document) -> list[Mapping[str, Any]]:
    """The items of an answer that wait for the caller: not those whose result is in the same answer, as the provider
    ran them."""
    items = _items(answer)
    ran = {text_of(item.get("call_id")) for item in items if text_of(item.get("type")).endswith("_output")}
    return [item for item in items if is_call(item) and text_of(item.get("call_id")) not in ran]


def _others(answer: Document) -> list[Mapping[str, Any]]:
    """The items of an answer that wait for nobody."""
    called = [id(item) for item in called_items(answer)]
    return [item for item in _items(answer) if id(item) not in called]


def listed_input(body: bytes) -> bytes:
    """The body with its input as a list: a plain text becomes a user message."""
    text, fields = fields_of(body)
    if "input" not in fields:
        return body
    start, end = fields["input"].value
    if not text[start:end].startswith(b'"'):
        return body
    return splice(body, [Edit(start, start, b'[{"role":"user","content":'), Edit(end, end, b"}]")])


def _said(exchange: SearchExchange) -> list[Mapping[str, Any]]:
    """The items of an answer and the results of its calls."""
    items = repeated(exchange.answer)
    kinds = {text_of(item.get("call_id")): text_of(item.get("type")) for item in items}
    results = [
        {"type": f"{kinds[call.id]}_output", "call_id": call.id, "output": text} for call, text in exchange.results
    ]
    return [*items, *results]


def repeated(answer: Document) -> list[Mapping[str, Any]]:
    """The items of an answer for the next request.

    The provider has not stored them, so their ids are removed where none is required; reasoning is only returned if it
    is encrypted.
    """
    said = [item for item in _items(answer) if item.get("type") != "reasoning" or item.get("encrypted_content")]
    return [item if item.get("type") in WITH_ID else _without_id(item) for item in said]


def _without_id(item: Mapping[str, Any]) -> Mapping[str, Any]:
    return {name: value for name, value in item.items() if name != "id"}


def is_call(item: Mapping[str, Any]) -> bool:
    """Whether the answer waits for the caller: shells and computers are called by their type, and approvals are
    requests, too. Searches of the provider's own are no calls."""
    kind = text_of(item.get("type"))
    if kind == "mcp_approval_request" or (kind == SEARCH_CALL and item.get("execution") == "client"):
        return True
    return "call_id" in item and not kind.endswith("_output") and not kind.startswith("tool_search")


def asked(item: Mapping[str, Any]) -> FunctionCall:
    """A call. Calls of anything but the request's functions get a name that no tool has."""
    kind, name = text_of(item.get("type")), called_name(item)
    if kind not in FUNCTIONS:
        name = f"{kind}:{name}" if kind != SEARCH_CALL else kind
    said = item.get("arguments")
    arguments = written(said).decode() if isinstance(said, dict) else text_of(said) or text_of(item.get("input"))
    return FunctionCall(name=name, arguments=arguments, id=text_of(item.get("call_id")))


def seen_by_client(item: Mapping[str, Any]) -> Mapping[str, Any]:
    """An item without the namespace that the client does not know."""
    if item.get("namespace") != OWN:
        return item
    return {name: value for name, value in item.items() if name != "namespace"}


def unseen(response: Document, hides: Hides) -> Document:
    """The response without hidden tools, if it repeats the request's tools."""
    if not isinstance(response.get("tools"), list):
        return response
    tools = [tool for tool in objects_of(response["tools"]) if not hides(_shown_name(tool))]
    return response | {"tools": tools}


def _shown_name(tool: Mapping[str, Any]) -> str:
    return SEARCH_CALL if tool.get("type") == "tool_search" else text_of(tool.get("name"))
