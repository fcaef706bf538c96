"""Any payload, by policy: query and tools by JSONPath, or in tags within a text (the gateway article, steps 1-2, 5)."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple
from urllib.parse import unquote

import jsonpath
import msgspec

from pegboard.catalog.ingest.provider_tools import tool_from_openai
from pegboard.errors import RequestNotUnderstood
from pegboard.gateways.llm.formats.anthropic.request import COUNTING
from pegboard.gateways.llm.formats.anthropic.request import MODEL as OF_CLAUDE
from pegboard.gateways.llm.formats.bedrock.request import PATH as OF_CONVERSE
from pegboard.gateways.llm.formats.contents import parts_of
from pegboard.gateways.llm.formats.gemini.request import choice_in, either, field_of
from pegboard.gateways.llm.formats.generic.payload_policy import SemanticToolFiltering
from pegboard.gateways.llm.formats.generic.tags import TaggedText
from pegboard.gateways.llm.formats.json_reader import object_of, read, text_of, understanding, value_of
from pegboard.gateways.llm.formats.json_spans import Edit, Member, Span, cut, elements, members, splice
from pegboard.gateways.llm.formats.openai_chat.request import DEPLOYMENT
from pegboard.gateways.llm.formats.protocol import NO_FIELDS, LlmRequest, Observer, OfferedTool, ToolChoice, parsed
from pegboard.gateways.llm.formats.streams import NullObserver
from pegboard.gateways.llm.formats.tool_arrays import (
    choice_of,
    name_in,
)
from pegboard.model import JsonObject, Message, Part, Tool, Turn

Place = tuple[str | int, ...]
"""The position of a value: the keys and indexes that lead to it."""
Found = tuple[Place, Any]
OF_GEMINI = re.compile(r"/models/([^/:]+):\w+$")
NOT_OURS = -1
"""The place of array elements that the path does not match: they stay."""


class Document:
    """A JSON document by value and by position."""

    def __init__(self, text: bytes) -> None:
        self.text = text
        self._value = read(text)
        self._objects: dict[Place, dict[str, Member]] = {}
        self._arrays: dict[Place, list[Span]] = {}

    def find(self, path: str) -> list[Found]:
        """The values that match a JSONPath, with their positions. Raises RequestNotUnderstood."""
        try:
            return [(tuple(match.parts), match.obj) for match in jsonpath.compile(path).finditer(self._value)]
        except jsonpath.JSONPathError as error:
            raise RequestNotUnderstood(
                f"JSONPath {path!r} fails on the request: {error}.", remedy="Correct the path."
            ) from None

    def tagged(self, found: Sequence[Found]) -> TaggedText | None:
        """The first text among the matches."""
        return next((TaggedText(self.text, self.span(place)) for place, value in found if isinstance(value, str)), None)

    def at(self, place: Place) -> Any:
        value = self._value
        for step in place:
            value = value[step]
        return value

    def span(self, place: Place) -> Span:
        if not place:
            return Span(0, len(self.text))
        parent, last = place[:-1], place[-1]
        if isinstance(last, int):
            return self.array(parent)[last]
        if parent not in self._objects:
            self._objects[parent] = members(self.text, self.span(parent))
        return self._objects[parent][last].value

    def array(self, place: Place) -> list[Span]:
        if place not in self._arrays:
            self._arrays[place] = elements(self.text, self.span(place))
        return self._arrays[place]


class Array(NamedTuple):
    """An array with tools: its elements, and the request's tools by element."""

    elements: list[Span]
    places: dict[int, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class Layout:
    """What rewriting needs: the arrays or the text with tools, and the text with the query."""

    arrays: tuple[Array, ...] = ()
    tools: TaggedText | None = None
    query: TaggedText | None = None


class Generic:
    """The codec of a payload policy."""

    name = "generic"

    def __init__(self, policy: SemanticToolFiltering | None = None) -> None:
        self.policy = policy or SemanticToolFiltering()

    def parse(self, body: bytes, path: str) -> LlmRequest:
        request, model = self._parsed(body), model_in(path)
        return replace(request, model=model) if model else request

    def tool(self, definition: JsonObject) -> Tool | None:
        return tool_from_openai("", definition)

    def rewrite(self, request: LlmRequest, kept: Collection[int]) -> bytes:
        """The body with these tools. Tags are always removed, so a tagged text changes even if all tools stay."""
        layout: Layout = request.layout
        staying = frozenset(kept)
        return splice(request.body, [*_array_edits(layout, staying), *_text_edits(layout, staying)])

    def narrow(self, request: LlmRequest, kept: Collection[int]) -> bytes | None:
        return None

    def observe(self, content_type: str) -> Observer:
        return NullObserver()

    def _parsed(self, body: bytes) -> LlmRequest:
        tagged_only = not self.policy.user_query_is_json and not self.policy.tools_is_json
        if tagged_only and not body.lstrip().startswith(b"{"):
            with understanding():
                return _of_text(body)
        return parsed(body, self._request)

    def _request(self, text: bytes, fields: dict[str, Member]) -> LlmRequest:
        document = Document(text)
        asked, query = self._query(document)
        offered, arrays, tools = self._tools(document)
        return LlmRequest(
            body=text,
            text=text,
            fields=fields,
            tools=offered,
            turn=_asking(asked),
            choice=_choice(text, fields) if self.policy.tools_is_json else ToolChoice(),
            model=text_of(value_of(text, fields, "model")),
            streams=value_of(text, fields, "stream") is True,
            may_lose_all=not self.policy.tools_is_json,
            layout=Layout(arrays=arrays, tools=tools, query=query),
        )

    def _query(self, document: Document) -> tuple[tuple[Part, ...], TaggedText | None]:
        found = document.find(self.policy.query_json_path)
        if self.policy.user_query_is_json:
            return tuple(part for _, value in found for part in parts_of(value)), None
        tagged = document.tagged(found)
        return ((Part(text=tagged.query),), tagged) if tagged is not None else ((), None)

    def _tools(self, document: Document) -> tuple[tuple[OfferedTool, ...], tuple[Array, ...], TaggedText | None]:
        found = document.find(self.policy.tools_json_path)
        if self.policy.tools_is_json:
            return *_in_arrays(document, found), None
        tagged = document.tagged(found)
        return (_in_text(tagged) if tagged is not None else ()), (), tagged


def model_in(path: str) -> str:
    """The model that the path of any provider names; empty if it names none.

    >>> model_in("/openai/deployments/mine/chat/completions"), model_in("/v1/chat/completions")
    ('mine', '')
    """
    others = (pattern.search(path) for pattern in (OF_CLAUDE, OF_CONVERSE, OF_GEMINI))
    found = DEPLOYMENT.search(unquote(path)) or next(filter(None, others), None)
    model = unquote(next(filter(None, found.groups()))) if found else COUNTING
    return "" if model == COUNTING else model


def _of_text(body: bytes) -> LlmRequest:
    """A payload that is not JSON: all of it is the text."""
    tagged = TaggedText(body, Span(0, len(body)), quoted=False)
    return LlmRequest(
        body=body,
        text=body,
        fields=NO_FIELDS,
        tools=_in_text(tagged),
        turn=_asking((Part(text=tagged.query),)),
        layout=Layout(tools=tagged, query=tagged),
    )


def _asking(parts: tuple[Part, ...]) -> Turn:
    return Turn(messages=(Message(role="user", parts=parts),))


def _choice(text: bytes, fields: Mapping[str, Member]) -> ToolChoice:
    """The payload's tool choice, if it is in the form of OpenAI, Anthropic or Gemini.

    All tools that it names must stay: where else it names them is unknown.
    """
    config = field_of(value_of(text, fields, either(fields, "toolConfig")), "functionCallingConfig")
    choice = choice_in(config) if config is not None else choice_of(value_of(text, fields, "tool_choice"))
    return replace(choice, forced=choice.names is not None)


def _in_text(tagged: TaggedText) -> tuple[OfferedTool, ...]:
    return tuple(
        OfferedTool(
            name=name, definition=msgspec.json.encode({"name": name, "description": description}), span=Span(0, 0)
        )
        for name, description in tagged.described()
    )


def _in_arrays(document: Document, found: Sequence[Found]) -> tuple[tuple[OfferedTool, ...], tuple[Array, ...]]:
    """The tools that a path matches: arrays, or single tools that are array elements or parts of one."""
    offered: list[OfferedTool] = []
    arrays: dict[Place, Array] = {}
    for place, value in found:
        for unit in [(*place, index) for index in range(len(value))] if isinstance(value, list) else [place]:
            array, index = _element(unit)
            if not array or not isinstance(document.at((*array, index)), dict):
                raise RequestNotUnderstood(
                    f"The value at {list(unit)} of the request is not a tool in an array.",
                    remedy="Make toolsJSONPath match an array of objects, or its elements.",
                )
            spans = arrays.setdefault(array, Array(document.array(array), {}))
            spans.places[index] = len(offered)
            offered.append(_offered(document, (*array, index), spans.elements[index]))
    return tuple(offered), tuple(arrays.values())


def _element(place: Place) -> tuple[Place, int]:
    """The array element that a value is or is part of: the array's position, and the index."""
    for end in range(len(place), 0, -1):
        last = place[end - 1]
        if isinstance(last, int):
            return place[: end - 1], last
    return (), 0


def _offered(document: Document, place: Place, span: Span) -> OfferedTool:
    entry = object_of(document.at(place))
    name = name_in(entry)
    return OfferedTool(name=name, definition=document.text[slice(*span)], span=span, hosted=not name)


def _array_edits(layout: Layout, staying: frozenset[int]) -> Iterator[Edit]:
    for array in layout.arrays:
        keep = [array.places.get(index, NOT_OURS) in {*staying, NOT_OURS} for index in range(len(array.elements))]
        yield from cut(array.elements, keep)


def _text_edits(layout: Layout, staying: frozenset[int]) -> Iterator[Edit]:
    if layout.tools is not None:
        yield from layout.tools.tool_edits(staying)
    if layout.query is not None:
        yield from layout.query.query_edits()
