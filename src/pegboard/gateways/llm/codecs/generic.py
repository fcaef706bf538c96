"""Any payload, by policy: query and tools by JSONPath, or in tags within a text (seed 003, steps 1, 2 and 5)."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import jsonpath
import msgspec

from pegboard.catalog.ingest.openai import tool_from_openai
from pegboard.errors import RequestNotUnderstood
from pegboard.gateways.llm.codec import NO_FIELDS, Choice, Observer, Offered, Request, parsed
from pegboard.gateways.llm.codecs.gemini import choice_in, either, field_of
from pegboard.gateways.llm.codecs.parts import choice_of, name_in, parts_of
from pegboard.gateways.llm.codecs.policy import SemanticToolFiltering
from pegboard.gateways.llm.codecs.tags import TaggedText
from pegboard.gateways.llm.reading import object_of, read, text_of, understanding, value_of
from pegboard.gateways.llm.spans import Edit, Member, Span, cut, elements, members, splice
from pegboard.gateways.llm.streams import Unseen
from pegboard.model import JsonObject, Message, Part, Tool, Turn

Place = tuple[str | int, ...]
"""Where a value stands: the keys and indexes that lead to it."""
Found = tuple[Place, Any]
NOT_OURS = -1
"""The place of an array's element that the path did not lead to: it stays."""


class Document:
    """A JSON document, by value and by where its values stand."""

    def __init__(self, text: bytes) -> None:
        self.text = text
        self._value = read(text)
        self._objects: dict[Place, dict[str, Member]] = {}
        self._arrays: dict[Place, list[Span]] = {}

    def find(self, path: str) -> list[Found]:
        """The values that a JSONPath leads to, and where they are. Raises RequestNotUnderstood."""
        try:
            return [(tuple(match.parts), match.obj) for match in jsonpath.compile(path).finditer(self._value)]
        except jsonpath.JSONPathError as error:
            raise RequestNotUnderstood(
                f"JSONPath {path!r} fails on the request: {error}.", remedy="Correct the path."
            ) from None

    def tagged(self, found: Sequence[Found]) -> TaggedText | None:
        """The first text of what was found."""
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
    """An array with tools in it: its elements, and the place of the request's tool that each one is."""

    elements: list[Span]
    places: dict[int, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class Layout:
    """What a rewrite needs: the arrays with tools in them, or the text, and the text with the query."""

    arrays: tuple[Array, ...] = ()
    tools: TaggedText | None = None
    query: TaggedText | None = None


class Generic:
    """The codec of a policy."""

    name = "generic"

    def __init__(self, policy: SemanticToolFiltering | None = None) -> None:
        self.policy = policy or SemanticToolFiltering()

    def parse(self, body: bytes, path: str) -> Request:
        tagged_only = not self.policy.user_query_is_json and not self.policy.tools_is_json
        if tagged_only and not body.lstrip().startswith(b"{"):
            with understanding():
                return _of_text(body)
        return parsed(body, self._request)

    def tool(self, definition: JsonObject) -> Tool | None:
        return tool_from_openai("", definition)

    def rewrite(self, request: Request, kept: Collection[int]) -> bytes:
        """The body with these tools. Tags do not go out, so a tagged text is changed even where every tool stays."""
        layout: Layout = request.layout
        staying = frozenset(kept)
        return splice(request.body, [*_array_edits(layout, staying), *_text_edits(layout, staying)])

    def narrow(self, request: Request, kept: Collection[int]) -> bytes | None:
        return None

    def defer(self, request: Request, loaded: Collection[int], kept: Collection[int]) -> bytes | None:
        return None

    def observe(self, content_type: str) -> Observer:
        return Unseen()

    def _request(self, text: bytes, fields: dict[str, Member]) -> Request:
        document = Document(text)
        asked, query = self._query(document)
        offered, arrays, tools = self._tools(document)
        return Request(
            body=text,
            text=text,
            fields=fields,
            tools=offered,
            turn=_asking(asked),
            choice=_choice(text, fields) if self.policy.tools_is_json else Choice(),
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

    def _tools(self, document: Document) -> tuple[tuple[Offered, ...], tuple[Array, ...], TaggedText | None]:
        found = document.find(self.policy.tools_json_path)
        if self.policy.tools_is_json:
            return *_in_arrays(document, found), None
        tagged = document.tagged(found)
        return (_in_text(tagged) if tagged is not None else ()), (), tagged


def _of_text(body: bytes) -> Request:
    """A payload that is no JSON at all: the text is all of it."""
    tagged = TaggedText(body, Span(0, len(body)), quoted=False)
    return Request(
        body=body,
        text=body,
        fields=NO_FIELDS,
        tools=_in_text(tagged),
        turn=_asking((Part(text=tagged.query),)),
        layout=Layout(tools=tagged, query=tagged),
    )


def _asking(parts: tuple[Part, ...]) -> Turn:
    return Turn(messages=(Message(role="user", parts=parts),))


def _choice(text: bytes, fields: Mapping[str, Member]) -> Choice:
    """What the payload says about calling tools, if it says it as OpenAI, Anthropic or Gemini do.

    All tools that it names have to stay: where else it names them is not known.
    """
    config = field_of(value_of(text, fields, either(fields, "toolConfig")), "functionCallingConfig")
    choice = choice_in(config) if config is not None else choice_of(value_of(text, fields, "tool_choice"))
    return replace(choice, forced=choice.names is not None)


def _in_text(tagged: TaggedText) -> tuple[Offered, ...]:
    return tuple(
        Offered(name=name, definition=msgspec.json.encode({"name": name, "description": description}), span=Span(0, 0))
        for name, description in tagged.described()
    )


def _in_arrays(document: Document, found: Sequence[Found]) -> tuple[tuple[Offered, ...], tuple[Array, ...]]:
    """Tools that a path leads to: as an array, or one by one, each then the element of an array or a part of one."""
    offered: list[Offered] = []
    arrays: dict[Place, Array] = {}
    for place, value in found:
        for unit in [(*place, index) for index in range(len(value))] if isinstance(value, list) else [place]:
            array, index = _element(unit)
            if not array or not isinstance(document.at((*array, index)), dict):
                raise RequestNotUnderstood(
                    f"What stands at {list(unit)} of the request is no tool in an array.",
                    remedy="Let toolsJSONPath lead to an array of objects, or into one.",
                )
            spans = arrays.setdefault(array, Array(document.array(array), {}))
            spans.places[index] = len(offered)
            offered.append(_offered(document, (*array, index), spans.elements[index]))
    return tuple(offered), tuple(arrays.values())


def _element(place: Place) -> tuple[Place, int]:
    """The array element that a value is, or is part of: the array's place, and the index."""
    for end in range(len(place), 0, -1):
        last = place[end - 1]
        if isinstance(last, int):
            return place[: end - 1], last
    return (), 0


def _offered(document: Document, place: Place, span: Span) -> Offered:
    entry = object_of(document.at(place))
    name = name_in(entry)
    return Offered(name=name, definition=document.text[slice(*span)], span=span, hosted=not name)


def _array_edits(layout: Layout, staying: frozenset[int]) -> Iterator[Edit]:
    for array in layout.arrays:
        keep = [array.places.get(index, NOT_OURS) in {*staying, NOT_OURS} for index in range(len(array.elements))]
        yield from cut(array.elements, keep)


def _text_edits(layout: Layout, staying: frozenset[int]) -> Iterator[Edit]:
    if layout.tools is not None:
        yield from layout.tools.tool_edits(staying)
    if layout.query is not None:
        yield from layout.query.query_edits()
