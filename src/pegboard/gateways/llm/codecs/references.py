"""References in an Anthropic conversation to tools that the request no longer offers.

A search for tools leaves a `tool_reference` for each one it found, and the history brings it along with every later
request. Where the caller has taken the tool off its list meanwhile, all of these fail, for ever (P21).
"""

from __future__ import annotations

from collections.abc import Iterator

from pegboard.gateways.llm.codec import Request
from pegboard.gateways.llm.reading import object_of, read
from pegboard.gateways.llm.spans import Edit, Span, cut, elements, members


def dangling_edits(request: Request) -> list[Edit]:
    """The edits that take such references out of the messages; what else a result holds stays, byte for byte."""
    gone = request.referenced - request.names
    if not gone:
        return []
    return [edit for found in _lists(request) for edit in _without(request, found, gone)]


def _lists(request: Request) -> Iterator[Span]:
    """The arrays in which results of searches refer to tools: what a server's search found, or a client's own."""
    text = request.text
    for message in elements(text, request.fields["messages"].value):
        content = _member(text, message, "content")
        for block in elements(text, content) if content and _is(text, content, b"[") else ():
            found = _member(text, block, "content") if _is(text, block, b"{") else None
            if found and _is(text, found, b"{"):
                found = _member(text, found, "tool_references")
            if found and _is(text, found, b"["):
                yield found


def _without(request: Request, array: Span, gone: frozenset[str]) -> list[Edit]:
    entries = elements(request.text, array)
    return cut(entries, [_named(request.text, entry) not in gone for entry in entries])


def _named(text: bytes, entry: Span) -> str | None:
    """The tool that an entry refers to; None where it is something else."""
    said = object_of(read(text[slice(*entry)]))
    return said.get("tool_name") if said.get("type") == "tool_reference" else None


def _member(text: bytes, within: Span, name: str) -> Span | None:
    found = members(text, within).get(name)
    return None if found is None else found.value


def _is(text: bytes, span: Span, begins: bytes) -> bool:
    return text[span.start : span.start + 1] == begins
