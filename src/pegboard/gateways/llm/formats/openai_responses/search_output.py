"""Tools that a search loads into a Responses conversation: a `tool_search` that the gateway executes as the client.

The deferred tools are not in the request's array: `tool_search_output` items bring their definitions to the end of the
prompt, so what precedes them stays cached. The API demands the namespace of a loaded tool in every call of it that a
request repeats. Tools that the client offers outside any namespace are loaded in `OWN`, which clients never see: it is
removed from calls in answers and added to those in the history.
https://developers.openai.com/api/docs/guides/tools-tool-search, read 2026-11-23
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from typing import Any

from pegboard.gateways.llm.formats.edits import appended, fields_of, schema, with_member, with_value, written
from pegboard.gateways.llm.formats.insertion import Fields, begins, member, objects, spot_in, value
from pegboard.gateways.llm.formats.json_reader import object_of, objects_of, read, text_of, value_of
from pegboard.gateways.llm.formats.json_spans import Edit, Span, members, splice
from pegboard.gateways.llm.formats.openai_chat.call_tool import TEXTS
from pegboard.gateways.llm.formats.openai_responses.namespaces import OWN, called_name, loaded_tools
from pegboard.gateways.llm.formats.openai_responses.response import CALLS
from pegboard.gateways.llm.formats.openai_responses.tool_search import (
    FUNCTIONS,
    SEARCH_CALL,
    is_stored,
    listed_input,
    repeated,
)
from pegboard.gateways.llm.formats.protocol import LlmRequest, OfferedTool
from pegboard.gateways.llm.formats.tool_arrays import allowed_edits, tool_cuts
from pegboard.gateways.llm.formats.tool_references import DeferredTools, ReferenceExchange
from pegboard.gateways.llm.formats.tool_search import Document, SearchTool

SEARCH, OUTPUT = "tool_search", "tool_search_output"
ENTRY = b'{"type":"tool_search","execution":"client"'
"""The beginning of the search as an entry of the array of tools; a string of a body cannot contain this."""
ABOUT_OWN = "Tools of this application."
ID = "call_pegboard_{}"
"""The id of a search in the history, by the number of its item."""
CLIENT: Mapping[str, str] = {"execution": "client", "status": "completed"}


class ResponsesDeferral:
    def closed(self, request: LlmRequest) -> str:
        if any(tool.deferred for tool in request.tools):
            return "it already has deferred tools"
        if any(tool.searches for tool in request.tools) or request.referenced:
            return "it has a search of its own"
        if any(OWN in (tool.namespace, tool.name) for tool in request.tools):
            return f"it has a namespace called {OWN}"
        if request.choice.names is not None and not request.choice.forced:
            return "it says which tools may be called"
        return ""

    def may_push(self, request: LlmRequest) -> bool:
        return True

    def call_name(self, search: SearchTool) -> str:
        return SEARCH_CALL

    def deferred(self, request: LlmRequest, tools: DeferredTools) -> bytes:
        body = splice(request.body, [*_array_edits(request, tools), *Loading(request, tools).edits()])
        if "tools" not in request.fields:
            body = with_member(body, "tools", b"[" + written(_entry(tools)) + b"]")
        return body

    def continued(self, body: bytes, request: LlmRequest, exchanges: Sequence[ReferenceExchange]) -> bytes:
        """A body without the search has all tools: the searches are of no use there, and stay out of its history. An
        answer that the provider keeps is continued by its id."""
        if ENTRY not in body:
            return body
        body, last = listed_input(body), exchanges[-1]
        known = self.brought(body) | (request.kept.loaded if request.kept is not None else frozenset())
        said = list(_said(request, exchanges, set(known)))
        if not is_stored(last.answer):
            return appended(body, "input", said)
        results = [item for item in said[-len(last.results) :] if text_of(item.get("type")).endswith("_output")]
        body = with_value(body, "input", written(results))
        return with_value(body, "previous_response_id", written(last.answer["id"]))

    def brought(self, body: bytes) -> frozenset[str]:
        return frozenset(loaded_tools(objects_of(value_of(*fields_of(body), "input"))))


@dataclass(slots=True)
class Loading:
    """Loads tools in a request's conversation: those pushed behind the user's messages, and those that it calls before
    the answer that does so, if nothing loaded them before."""

    request: LlmRequest
    tools: DeferredTools
    loaded: set[str] = field(default_factory=set)
    deferred: Mapping[str, OfferedTool] = field(init=False)

    def __post_init__(self) -> None:
        places = sorted(self.tools.kept - self.tools.loaded)
        self.deferred = {self.request.tools[place].name: self.request.tools[place] for place in places}
        if self.request.kept is not None:
            self.loaded |= self.request.kept.loaded

    def edits(self) -> Iterator[Edit]:
        said = member(self.request, self.request.fields, "input")
        if said is None:
            return
        if begins(self.request, said, b'"'):
            first = self._pair("0p", self._pushed(0))
            if first:
                yield Edit(said.start, said.start, b'[{"role":"user","content":')
                yield Edit(said.end, said.end, b"}," + first + b"]")
            return
        yield from self._in_items(list(objects(self.request, said)))

    def _in_items(self, items: Sequence[tuple[Span, Fields]]) -> Iterator[Edit]:
        kinds = [_kind(self.request, fields) for _, fields in items]
        spoken, waiting = 0, list[str]()
        for number, (span, fields) in enumerate(items):
            if kinds[number] == "user":
                if spot_in(self.request, member(self.request, fields, "content"), _text, TEXTS, "") is not None:
                    waiting += self._pushed(spoken)
                    spoken += 1
                if kinds[number + 1 : number + 2] != ["user"]:
                    pair, waiting = self._pair(f"{number}p", waiting), []
                    yield from [Edit(span.end, span.end, b"," + pair)] if pair else ()
            elif kinds[number] in CALLS:
                name = self._called(fields)
                begin = _beginning(kinds, number)
                calls = [each for each in range(begin, _end(kinds, number)) if kinds[each] in CALLS]
                if number == calls[0]:
                    pair = self._pair(f"{begin}c", [self._called(items[each][1]) for each in calls])
                    start = items[begin][0].start
                    yield from [Edit(start, start, pair + b",")] if pair else ()
                if name in self.deferred and not self.deferred[name].namespace:
                    at = fields["name"].end
                    yield Edit(at, at, b',"namespace":' + written(OWN))

    def _called(self, fields: Fields) -> str:
        return called_name({name: value(self.request, fields, name) for name in ("name", "namespace")})

    def _pushed(self, number: int) -> list[str]:
        """The tools pushed for a message of the body. Behind the first one these are also those for messages at the
        provider, whose history may not have loaded them."""
        before = self.request.remembered
        numbers = range(before + 1) if number == 0 else [before + number]
        return [self.request.tools[place].name for each in numbers for place in self.tools.pushed.get(each, ())]

    def _pair(self, id_: str, names: Sequence[str]) -> bytes:
        """A search and what it loads; empty if nothing is new."""
        new = [name for name in dict.fromkeys(names) if name in self.deferred and name not in self.loaded]
        self.loaded.update(new)
        if not new:
            return b""
        call = {"type": SEARCH_CALL, "call_id": ID.format(id_), **CLIENT, "arguments": {"query": ", ".join(new)}}
        return written(call) + b"," + written(search_output(self.request, ID.format(id_), tuple(new)))


def _array_edits(request: LlmRequest, tools: DeferredTools) -> list[Edit]:
    """The edits that leave only loaded tools in the array, followed by the search, and in a list of allowed tools, if
    it names any of them."""
    if "tools" not in request.fields:
        return []
    start, end = request.fields["tools"].value
    if not tools.loaded:
        return [Edit(start, end, b"[" + written(_entry(tools)) + b"]")]
    search = Edit(end - 1, end - 1, b"," + written(_entry(tools)))
    listed = {request.tools[place].name for place in tools.loaded}
    allowed = allowed_edits(request, tools.loaded) if listed & (request.choice.names or set()) else []
    return [*tool_cuts(request, tools.loaded), search, *allowed]


def _entry(tools: DeferredTools) -> Document:
    about = tools.search.description
    return {"type": SEARCH, "execution": "client", "description": about, "parameters": schema()}


def _said(request: LlmRequest, exchanges: Sequence[ReferenceExchange], known: set[str]) -> Iterator[Mapping[str, Any]]:
    """The items of the answers, and the results of their calls: of a search without what is ``known`` by then, of any
    other a text."""
    for exchange in exchanges:
        items = repeated(exchange.answer)
        yield from items
        kinds = {text_of(item.get("call_id")): text_of(item.get("type")) for item in items}
        for call, found in exchange.results:
            if kinds.get(call.id) in FUNCTIONS:
                yield {"type": f"{kinds[call.id]}_output", "call_id": call.id, "output": found}
                continue
            new = () if isinstance(found, str) else tuple(name for name in found if name not in known)
            yield search_output(request, call.id, new)
            known.update(new)


def search_output(request: LlmRequest, id_: str, names: Sequence[str]) -> Document:
    """The result of a search: definitions as they came, in their namespaces. A text has no place in it."""
    by_name = {tool.name: tool for tool in request.tools if not tool.hosted}
    tools = [by_name[name] for name in names if name in by_name]
    groups = groupby(sorted(tools, key=lambda tool: tool.namespace), key=lambda tool: tool.namespace)
    entries = [_namespace(request, list(group)) for _, group in groups]
    return {"type": OUTPUT, "call_id": id_, **CLIENT, "tools": entries}


def _namespace(request: LlmRequest, tools: Sequence[OfferedTool]) -> Document:
    """These tools of one namespace, which is `OWN` for those that have none."""
    entry = tools[0].entry
    about = {"name": OWN, "description": ABOUT_OWN}
    if entry is not None:
        fields = members(request.text, entry)
        about = {name: read(request.text[slice(*each.value)]) for name, each in fields.items() if name != "tools"}
    inside = [{**object_of(read(request.text[slice(*tool.span)])), "defer_loading": True} for tool in tools]
    return {"type": "namespace", **about, "tools": inside}


def _kind(request: LlmRequest, fields: Fields) -> str:
    """The type of an item; of a message its role."""
    kind = text_of(value(request, fields, "type")) or "message"
    return text_of(value(request, fields, "role")) if kind == "message" else kind


def _beginning(kinds: Sequence[str], number: int) -> int:
    """Where the answer's calls begin, with the thoughts directly before them, which must not be parted from them."""
    while number and kinds[number - 1] in ("reasoning", *CALLS):
        number -= 1
    return number


def _end(kinds: Sequence[str], number: int) -> int:
    while number < len(kinds) and kinds[number] in ("reasoning", *CALLS):
        number += 1
    return number


def _text(text: str) -> Document:
    return {"type": "input_text", "text": text}
