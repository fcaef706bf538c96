"""Positions in a request's conversation, and edits there. Pure."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import Any

from pegboard.gateways.llm.formats.call_tool import Spot
from pegboard.gateways.llm.formats.edits import written
from pegboard.gateways.llm.formats.json_reader import read, text_of
from pegboard.gateways.llm.formats.json_spans import Edit, Member, Span, elements, members
from pegboard.gateways.llm.formats.protocol import LlmRequest
from pegboard.gateways.llm.formats.tool_arrays import (
    given,
)

APART = "\n\n"
"""Separates the inserted text from the user's words if both are one string."""
Wrap = Callable[[str, bytes], bytes]
"""Makes the arguments of `call_tool` from a tool's name and its own arguments as written in the body."""
Fields = Mapping[str, Member]


def objects(request: LlmRequest, within: Span | None) -> Iterator[tuple[Span, Fields]]:
    """The objects of an array, or the single object, with their members."""
    if within is None:
        return
    spans = elements(request.text, within) if begins(request, within, b"[") else [within]
    yield from ((span, members(request.text, span)) for span in spans if begins(request, span, b"{"))


def begins(request: LlmRequest, span: Span, with_: bytes) -> bool:
    return request.text.startswith(with_, span.start)


def value(request: LlmRequest, fields: Fields, name: str) -> Any:
    span = given(request.text, fields, name)
    return None if span is None else read(request.text[slice(*span)])


def member(request: LlmRequest, fields: Fields, name: str) -> Span | None:
    return given(request.text, fields, name)


def call_edits(
    request: LlmRequest, call: Fields, arguments: str, *, own: str, wrap: Wrap, empty: bytes, name: str = ""
) -> Iterator[Edit]:
    """Turns a call into one of ``own``. ``empty`` are the arguments if it has none, ``name`` is the tool's name if the
    call has another; calls of tools that stay are unchanged."""
    name = name or text_of(value(request, call, "name"))
    if not name or name in staying(request):
        return
    yield Edit(*call["name"].value, written(own))
    span = member(request, call, arguments)
    if span is not None:
        yield Edit(*span, wrap(name, request.body[slice(*span)]))
    elif arguments in call:
        yield Edit(*call[arguments].value, wrap(name, empty))
    else:
        yield Edit(call["name"].end, call["name"].end, b"," + written(arguments) + b":" + wrap(name, empty))


def staying(request: LlmRequest) -> Collection[str]:
    return {tool.name for tool in request.tools if tool.stays}


def array_edits(request: LlmRequest, entry: bytes) -> list[Edit]:
    """Replaces an array of tools by those that stay, followed by this entry."""
    kept = [tool.definition for tool in request.tools if tool.stays]
    return [Edit(*request.fields["tools"].value, b"[" + b",".join([*kept, entry]) + b"]")]


def in_string(span: Span) -> Spot:
    return lambda text: Edit(span.start + 1, span.start + 1, written(text + APART)[1:-1])


def before_part(span: Span, part: Callable[[str], object]) -> Spot:
    return lambda text: Edit(span.start, span.start, written(part(text)) + b",")


def spot_in(
    request: LlmRequest, content: Span | None, part: Callable[[str], object], texts: Sequence[str], results: str
) -> Spot | None:
    """The spot in a user's content, which is a string or parts; None if the user says nothing in it.

    ``texts`` are the types of text parts; tool results, whose type ends with ``results``, come before everything else.
    """
    if content is None:
        return None
    if begins(request, content, b'"'):
        return in_string(content) if text_of(read(request.text[slice(*content)])).strip() else None
    spans = elements(request.text, content) if begins(request, content, b"[") else []
    first, speaks = None, False
    for span in spans:
        said = read(request.text[slice(*span)])
        kind = text_of(said.get("type")) if isinstance(said, dict) else texts[0]
        if results and kind.endswith(results):
            first = None
        elif kind in texts:
            first = first or span
            text = said.get("text") if isinstance(said, dict) else said
            speaks = speaks or bool(text_of(text).strip())
    if not speaks:
        return None
    return before_part(first, part) if first else behind_part(spans[-1], part)


def behind_part(span: Span, part: Callable[[str], object]) -> Spot:
    return lambda text: Edit(span.end, span.end, b"," + written(part(text)))
