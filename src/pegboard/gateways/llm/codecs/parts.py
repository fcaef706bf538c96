"""What the OpenAI and Anthropic formats share: contents in parts, arrays of tools, and what depends on them."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Any

import msgspec

from pegboard.errors import RequestNotUnderstood
from pegboard.gateways.llm.codec import Choice, Offered, Request
from pegboard.gateways.llm.obedience import moved_breakpoints
from pegboard.gateways.llm.reading import object_of, objects_of, read, text_of
from pegboard.gateways.llm.spans import Edit, Member, Span, cut, cut_members, elements, members, splice
from pegboard.model import JsonObject, Part, PartKind

KINDS: Mapping[str, PartKind] = {
    "text": "text",
    "input_text": "text",
    "output_text": "text",
    "image": "image",
    "image_url": "image",
    "input_image": "image",
    "input_audio": "audio",
    "audio": "audio",
}
NULL = b"null"
MOST_ARRAYS = 32
MOST_REMEMBERED = 256 * 1024
"""Arrays of tools that are remembered, and bytes that one may have for that."""
NO_RAW = msgspec.Raw()


def parts_of(content: object) -> tuple[Part, ...]:
    """A message's content: a text, or a list of parts (P2). What is neither text, image nor sound counts as a file."""
    if isinstance(content, str):
        return (Part(text=content),)
    return tuple(
        Part(text=each) if isinstance(each, str) else _part(each)
        for each in (content if isinstance(content, list) else [])
        if isinstance(each, str | dict)
    )


def _part(part: Mapping[str, Any]) -> Part:
    kind = KINDS.get(text_of(part.get("type")), "file")
    return Part(kind=kind, text=text_of(part.get("text")) if kind == "text" else "")


def result_of(content: object, tool: str | None = None) -> tuple[Part, ...]:
    """What a tool answered, as the parts of a message of its own."""
    return tuple(Part(kind="tool_result", text=part.text, tool=tool) for part in parts_of(content))


def given(text: bytes, fields: Mapping[str, Member], name: str) -> Span | None:
    """Where the value of a member stands; None where it is not there, or null."""
    if name not in fields:
        return None
    span = fields[name].value
    return None if text[slice(*span)] == NULL else span


def remembering(read: Callable[[bytes], tuple[Offered, ...]]) -> Callable[[bytes, Span | None], tuple[Offered, ...]]:
    """Reads the array of tools that stands somewhere in a text, and once only while the same bytes keep coming.

    Clients send the same tools with every request. ``read`` gets the array alone, so that it may stand elsewhere.
    """
    known = lru_cache(maxsize=MOST_ARRAYS)(read)

    def offered_at(text: bytes, array: Span | None) -> tuple[Offered, ...]:
        if array is None:
            return ()
        alone = text[array.start : array.end]
        found = known(alone) if len(alone) <= MOST_REMEMBERED else read(alone)
        return tuple(_moved(tool, array.start) for tool in found)

    return offered_at


def _moved(tool: Offered, by: int) -> Offered:
    return Offered(
        name=tool.name,
        definition=tool.definition,
        span=Span(tool.span.start + by, tool.span.end + by),
        hosted=tool.hosted,
        deferred=tool.deferred,
        searches=tool.searches,
        breakpoint=tool.breakpoint,
    )


def choice_of(value: object) -> Choice:
    """`tool_choice`, and `function_call` of old: a word, one tool to call, or a list of allowed ones.

    Nested (`function.name`) and flat (`name`) shapes are both in use, and `any` is what some call `required`.
    """
    if isinstance(value, str):
        return Choice(mode="none" if value == "none" else "required" if value in ("required", "any") else "auto")
    choice = object_of(value)
    match choice.get("type"):
        case "auto" | "none" | "any" | "required" as mode:
            return choice_of(mode)
        case "allowed_tools":
            allowed = object_of(choice.get("allowed_tools", choice))
            names = frozenset(filter(None, map(name_in, objects_of(allowed.get("tools")))))
            return Choice(mode="required" if allowed.get("mode") == "required" else "auto", names=names)
    name = name_in(choice)
    if name:
        return Choice(mode="required", names=frozenset([name]), forced=True)
    return Choice(mode="required" if choice else "auto")


def name_in(entry: Mapping[str, Any]) -> str:
    """The name of a function or custom tool, in either shape; empty for a hosted one, whatever names it has."""
    kind = text_of(entry.get("type")) or "function"
    if kind not in ("function", "custom", "tool"):
        return ""
    return text_of(object_of(entry.get(kind, entry)).get("name")) or text_of(entry.get("name"))


def allowed_edits(request: Request, kept: Collection[int]) -> list[Edit]:
    """The edits that take tools which are gone out of the list that `allowed_tools` is."""
    if request.choice.names is None or request.choice.forced:
        return []
    choice = members(request.text, request.fields["tool_choice"].value)
    listed = members(request.text, choice["allowed_tools"].value) if "allowed_tools" in choice else choice
    return names_cut(
        request, kept, elements(request.text, listed["tools"].value), lambda entry: name_in(object_of(entry))
    )


def narrowed(request: Request, entries: Sequence[JsonObject], *, nested: bool) -> bytes:
    """The body with all of its tools, and a `tool_choice` by which just these may be called.

    Chat Completions nests the list in a member of its own, Responses does not.
    """
    listed = {"mode": request.choice.mode, "tools": entries}
    choice = {"type": "allowed_tools"} | ({"allowed_tools": listed} if nested else listed)
    written = msgspec.json.encode(choice)
    if "tool_choice" in request.fields:
        return splice(request.body, [Edit(*request.fields["tool_choice"].value, written)])
    end = request.fields["tools"].end
    return splice(request.body, [Edit(end, end, b',"tool_choice":' + written)])


def names_cut(request: Request, kept: Collection[int], entries: list[Span], name: Any) -> list[Edit]:
    """The edits that take out of a list the entries whose ``name`` is that of an offered tool that is not kept."""
    gone = request.names - {request.tools[place].name for place in kept}
    return cut(entries, [name(read(request.text[slice(*entry)])) not in gone for entry in entries])


def rewritten(
    request: Request, kept: Collection[int], *, array: str, dependent: Iterable[str], mended: Sequence[Edit] = ()
) -> bytes:
    """The body with these tools of its one array; with none, without it and what depends on it (P10, P12).

    ``mended`` are edits of what is wrong elsewhere.
    """
    if len(kept) == len(request.tools):
        return splice(request.body, mended) if mended else request.body
    if not kept:
        return splice(request.body, [*cut_members(request.fields, [array, *dependent]), *mended])
    staying = frozenset(kept)
    spans = [tool.span for tool in request.tools]
    return splice(
        request.body,
        [
            *cut(spans, [place in staying for place in range(len(spans))]),
            *breakpoint_edits(request, moved_breakpoints(request, kept)),
            *allowed_edits(request, kept),
            *mended,
        ],
    )


def breakpoint_edits(request: Request, moved: Mapping[int, bytes]) -> Iterable[Edit]:
    """The edits that put cache breakpoints on kept tools (P20), behind what else these have."""
    for place, breakpoint_ in moved.items():
        span = request.tools[place].span
        own = members(request.text, span).get("cache_control")
        if own is not None:
            yield Edit(own.value.start, own.value.end, breakpoint_)
        else:
            yield Edit(span.end - 1, span.end - 1, b',"cache_control":' + breakpoint_)


class Cached(msgspec.Struct):
    """What any tool may carry besides its definition."""

    cache_control: msgspec.Raw = NO_RAW
    defer_loading: bool | None = None


def breakpoint_of(tool: Cached) -> bytes | None:
    written = bytes(tool.cache_control)
    return None if written in (b"", NULL) else written


def offered(
    text: bytes, span: Span, name: str, tool: Cached, *, hosted: bool = False, searches: bool = False
) -> Offered:
    """A tool of an array. Raises RequestNotUnderstood for one that could be called and has no name."""
    if not (name or hosted):
        raise RequestNotUnderstood("A tool of the request has no name.", remedy="Give every function a name.")
    return Offered(
        name=name,
        definition=text[span.start : span.end],
        span=span,
        hosted=hosted,
        deferred=tool.defer_loading is True,
        searches=searches,
        breakpoint=breakpoint_of(tool),
    )
