"""Where things stand in a request's conversation, and the edits that are made there. Pure."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import Any

from pegboard.gateways.llm.codec import Request
from pegboard.gateways.llm.codecs.parts import given
from pegboard.gateways.llm.one_tool.wire import Spot
from pegboard.gateways.llm.reading import read, text_of
from pegboard.gateways.llm.spans import Edit, Member, Span, elements, members
from pegboard.gateways.llm.way_back.edits import written

APART = "\n\n"
"""Between what we put before a user's words and these, where both are one string."""
Wrap = Callable[[str, bytes], bytes]
"""The arguments of `call_tool` for a tool's name and its own arguments, as they stand in the body."""
Fields = Mapping[str, Member]


def objects(request: Request, within: Span | None) -> Iterator[tuple[Span, Fields]]:
    """The objects of the array that stands there, or the one object that does, with their members."""
    if within is None:
        return
    spans = elements(request.text, within) if begins(request, within, b"[") else [within]
    yield from ((span, members(request.text, span)) for span in spans if begins(request, span, b"{"))


def begins(request: Request, span: Span, with_: bytes) -> bool:
    return request.text.startswith(with_, span.start)


def value(request: Request, fields: Fields, name: str) -> Any:
    span = given(request.text, fields, name)
    return None if span is None else read(request.text[slice(*span)])


def member(request: Request, fields: Fields, name: str) -> Span | None:
    return given(request.text, fields, name)


def call_edits(request: Request, call: Fields, arguments: str, *, own: str, wrap: Wrap, empty: bytes) -> Iterator[Edit]:
    """Makes of a call one of ``own``. ``empty`` are arguments where it has none; calls of tools that stay are left."""
    name = text_of(value(request, call, "name"))
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


def staying(request: Request) -> Collection[str]:
    return {tool.name for tool in request.tools if tool.stays}


def array_edits(request: Request, entry: bytes) -> list[Edit]:
    """Makes of an array of tools those that stay, and behind them this one."""
    kept = [tool.definition for tool in request.tools if tool.stays]
    return [Edit(*request.fields["tools"].value, b"[" + b",".join([*kept, entry]) + b"]")]


def in_string(span: Span) -> Spot:
    return lambda text: Edit(span.start + 1, span.start + 1, written(text + APART)[1:-1])


def before_part(span: Span, part: Callable[[str], object]) -> Spot:
    return lambda text: Edit(span.start, span.start, written(part(text)) + b",")


def spot_in(
    request: Request, content: Span | None, part: Callable[[str], object], texts: Sequence[str], results: str
) -> Spot | None:
    """The spot in a user's content, a string or parts; None where nothing is said in it.

    ``texts`` are the types of text parts, and results of tools, whose type ends like ``results``, come before all else.
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
