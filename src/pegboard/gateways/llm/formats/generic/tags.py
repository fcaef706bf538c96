"""Tools and a query in tags within a text (the gateway article, format flexibility)."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Collection, Iterable, Sequence
from typing import NamedTuple

from pegboard.gateways.llm.formats.json_reader import read
from pegboard.gateways.llm.formats.json_spans import Edit, Span

QUERY, NAME, DESCRIPTION = "userq", "toolname", "tooldescription"
TAG = re.compile(rf"<(/?)({QUERY}|{NAME}|{DESCRIPTION})>")
ESCAPE = re.compile(r"\\(?:u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|u[0-9a-fA-F]{4}|.)", re.DOTALL)


class Element(NamedTuple):
    """A pair of tags and its content; positions in characters."""

    tag: str
    start: int
    inner: Span
    end: int

    def text(self, text: str) -> str:
        return text[slice(*self.inner)].strip()

    @property
    def whole(self) -> list[Span]:
        return [Span(self.start, self.end)]

    @property
    def tags(self) -> list[Span]:
        return [Span(self.start, self.inner.start), Span(self.inner.end, self.end)]


class TaggedTool(NamedTuple):
    """The elements of one tool: its name, and its description if one comes before the next name."""

    name: Element
    description: Element | None


def elements_in(text: str) -> list[Element]:
    """All pairs of tags, in order; an unclosed tag is plain text."""
    found, opened = [], None
    for tag in TAG.finditer(text):
        if not tag[1]:
            opened = tag
        elif opened is not None and opened[2] == tag[2]:
            found.append(Element(tag[2], opened.start(), Span(opened.end(), tag.start()), tag.end()))
            opened = None
    return found


def tools_in(elements: Sequence[Element]) -> list[TaggedTool]:
    """The tools that elements describe; a description without a preceding name is ignored."""
    found: list[TaggedTool] = []
    for element in elements:
        if element.tag == NAME:
            found.append(TaggedTool(element, None))
        elif element.tag == DESCRIPTION and found and found[-1].description is None:
            found[-1] = found[-1]._replace(description=element)
    return found


class TaggedText:
    """A text with tags, within a JSON string or by itself; escapes stay as written."""

    def __init__(self, body: bytes, span: Span, *, quoted: bool = True) -> None:
        raw = body[span.start : span.end]
        self._text: str = read(raw) if quoted else raw.decode()
        self._raw, self._start = raw.decode(), span.start
        self._behind, self._ahead = _escapes(self._raw) if quoted else ([0], [0])
        self._elements = elements_in(self._text)
        self._tools = tools_in(self._elements)

    @property
    def query(self) -> str:
        """The last query in the text."""
        return next((each.text(self._text) for each in reversed(self._elements) if each.tag == QUERY), "")

    def described(self) -> list[tuple[str, str]]:
        """The name and description of each tool."""
        return [
            (tool.name.text(self._text), tool.description.text(self._text) if tool.description else "")
            for tool in self._tools
        ]

    def tool_edits(self, kept: Collection[int]) -> list[Edit]:
        """Removes the tags of kept tools and the whole elements of others."""
        return self._edits(
            span
            for place, tool in enumerate(self._tools)
            for element in tool
            if element is not None
            for span in (element.tags if place in kept else element.whole)
        )

    def query_edits(self) -> list[Edit]:
        """Removes the tags of queries."""
        return self._edits(span for each in self._elements if each.tag == QUERY for span in each.tags)

    def _edits(self, cuts: Iterable[Span]) -> list[Edit]:
        """Turns cuts of the text (character positions, in order) into edits of the body."""
        edits, at, byte = [], 0, self._start
        for cut in cuts:
            places = [self._raw_place(character) for character in cut]
            start = byte + len(self._raw[at : places[0]].encode())
            end = start + len(self._raw[places[0] : places[1]].encode())
            edits.append(Edit(start, end))
            at, byte = places[1], end
        return edits

    def _raw_place(self, character: int) -> int:
        """The position of this character in the raw text."""
        escape = bisect_right(self._behind, character) - 1
        return self._ahead[escape] + character - self._behind[escape]


def _escapes(raw: str) -> tuple[list[int], list[int]]:
    """For each stretch of a JSON string without escapes, its first character and its position in the raw string."""
    behind, ahead = [0], [1]
    for escape in ESCAPE.finditer(raw, 1, len(raw) - 1):
        behind.append(escape.start() - ahead[-1] + behind[-1] + 1)
        ahead.append(escape.end())
    return behind, ahead
