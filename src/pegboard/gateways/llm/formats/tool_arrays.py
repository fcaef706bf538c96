"""Arrays of tools in the form of OpenAI and Anthropic, and what depends on them: choices, lists of names,
breakpoints."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Any

import msgspec

from pegboard.errors import RequestNotUnderstood
from pegboard.gateways.llm.formats.json_reader import object_of, objects_of, read, text_of
from pegboard.gateways.llm.formats.json_spans import Edit, Member, Span, cut, cut_members, elements, members, splice
from pegboard.gateways.llm.formats.protocol import LlmRequest, OfferedTool, ToolChoice
from pegboard.gateways.llm.formats.tool_choice import moved_breakpoints
from pegboard.model import JsonObject

NULL = b"null"
MOST_ARRAYS = 32
MOST_REMEMBERED = 256 * 1024
"""The number of cached arrays of tools, and the most bytes of one."""
NO_RAW = msgspec.Raw()


def given(text: bytes, fields: Mapping[str, Member], name: str) -> Span | None:
    """The span of a member's value; None if it is missing or null."""
    if name not in fields:
        return None
    span = fields[name].value
    return None if text[slice(*span)] == NULL else span


def remembering(
    read: Callable[[bytes], tuple[OfferedTool, ...]],
) -> Callable[[bytes, Span | None], tuple[OfferedTool, ...]]:
    """Caches the parsed array of tools, wherever it is in a text.

    Clients send the same tools with every request. ``read`` gets the array alone, so its position may change.
    """
    known = lru_cache(maxsize=MOST_ARRAYS)(read)

    def offered_at(text: bytes, array: Span | None) -> tuple[OfferedTool, ...]:
        if array is None:
            return ()
        alone = text[array.start : array.end]
        found = known(alone) if len(alone) <= MOST_REMEMBERED else read(alone)
        return tuple(_moved(tool, array.start) for tool in found)

    return offered_at


def _moved(tool: OfferedTool, by: int) -> OfferedTool:
    return OfferedTool(
        name=tool.name,
        definition=tool.definition,
        span=Span(tool.span.start + by, tool.span.end + by),
        hosted=tool.hosted,
        deferred=tool.deferred,
        searches=tool.searches,
        breakpoint=tool.breakpoint,
        namespace=tool.namespace,
        entry=Span(tool.entry.start + by, tool.entry.end + by) if tool.entry else None,
    )


def choice_of(value: object) -> ToolChoice:
    """Parses `tool_choice` and the legacy `function_call`: a word, one tool to call, or a list of allowed ones.

    Nested (`function.name`) and flat (`name`) shapes both occur, and some use `any` for `required`.
    """
    if isinstance(value, str):
        return ToolChoice(mode="none" if value == "none" else "required" if value in ("required", "any") else "auto")
    choice = object_of(value)
    match choice.get("type"):
        case "auto" | "none" | "any" | "required" as mode:
            return choice_of(mode)
        case "allowed_tools":
            allowed = object_of(choice.get("allowed_tools", choice))
            names = frozenset(filter(None, map(name_in, objects_of(allowed.get("tools")))))
            return ToolChoice(mode="required" if allowed.get("mode") == "required" else "auto", names=names)
    name = name_in(choice)
    if name:
        return ToolChoice(mode="required", names=frozenset([name]), forced=True)
    return ToolChoice(mode="required" if choice else "auto")


def name_in(entry: Mapping[str, Any]) -> str:
    """The name of a function or custom tool, in either shape; empty for a hosted one, whatever it contains."""
    kind = text_of(entry.get("type")) or "function"
    if kind not in ("function", "custom", "tool"):
        return ""
    return text_of(object_of(entry.get(kind, entry)).get("name")) or text_of(entry.get("name"))


def allowed_edits(request: LlmRequest, kept: Collection[int]) -> list[Edit]:
    """The edits that remove dropped tools from the list of `allowed_tools`."""
    if request.choice.names is None or request.choice.forced:
        return []
    choice = members(request.text, request.fields["tool_choice"].value)
    listed = members(request.text, choice["allowed_tools"].value) if "allowed_tools" in choice else choice
    return names_cut(
        request, kept, elements(request.text, listed["tools"].value), lambda entry: name_in(object_of(entry))
    )


def narrowed(request: LlmRequest, entries: Sequence[JsonObject], *, nested: bool) -> bytes:
    """The body with all its tools and a `tool_choice` that allows only these.

    Chat Completions nests the list in another member, Responses does not.
    """
    listed = {"mode": request.choice.mode, "tools": entries}
    choice = {"type": "allowed_tools"} | ({"allowed_tools": listed} if nested else listed)
    written = msgspec.json.encode(choice)
    if "tool_choice" in request.fields:
        return splice(request.body, [Edit(*request.fields["tool_choice"].value, written)])
    end = request.fields["tools"].end
    return splice(request.body, [Edit(end, end, b',"tool_choice":' + written)])


def names_cut(request: LlmRequest, kept: Collection[int], entries: list[Span], name: Any) -> list[Edit]:
    """The edits that remove the entries from a list whose ``name`` is an offered tool that is not kept."""
    gone = request.names - {request.tools[place].name for place in kept}
    return cut(entries, [name(read(request.text[slice(*entry)])) not in gone for entry in entries])


def rewritten(
    request: LlmRequest, kept: Collection[int], *, array: str, dependent: Iterable[str], mended: Sequence[Edit] = ()
) -> bytes:
    """The body with these tools in its one array; if there are none, without the array and what depends on it (P10,
    P12).

    ``mended`` are corrections elsewhere.
    """
    if len(kept) == len(request.tools):
        return splice(request.body, mended) if mended else request.body
    if not kept:
        return splice(request.body, [*cut_members(request.fields, [array, *dependent]), *mended])
    return splice(
        request.body,
        [
            *tool_cuts(request, kept),
            *breakpoint_edits(request, moved_breakpoints(request, kept)),
            *allowed_edits(request, kept),
            *mended,
        ],
    )


def tool_cuts(request: LlmRequest, kept: Collection[int]) -> list[Edit]:
    """The edits that remove the other tools from their array, and a namespace of which nothing is left."""
    staying = frozenset(kept)
    if not any(tool.entry for tool in request.tools):
        return cut([tool.span for tool in request.tools], [place in staying for place in range(len(request.tools))])
    entries: dict[Span, list[int]] = {}
    for place, tool in enumerate(request.tools):
        entries.setdefault(tool.entry or tool.span, []).append(place)
    left = {entry: [place in staying for place in places] for entry, places in entries.items()}
    edits = cut(list(entries), [any(flags) for flags in left.values()])
    for entry, flags in left.items():
        if any(flags) and not all(flags):
            edits += cut([request.tools[place].span for place in entries[entry]], flags)
    return edits


def breakpoint_edits(request: LlmRequest, moved: Mapping[int, bytes]) -> Iterable[Edit]:
    """The edits that put cache breakpoints on kept tools (P20), after their other fields."""
    for place, breakpoint_ in moved.items():
        span = request.tools[place].span
        own = members(request.text, span).get("cache_control")
        if own is not None:
            yield Edit(own.value.start, own.value.end, breakpoint_)
        else:
            yield Edit(span.end - 1, span.end - 1, b',"cache_control":' + breakpoint_)


class CachedTool(msgspec.Struct):
    """What a tool may carry besides its definition."""

    cache_control: msgspec.Raw = NO_RAW
    defer_loading: bool | None = None


def breakpoint_of(tool: CachedTool) -> bytes | None:
    written = bytes(tool.cache_control)
    return None if written in (b"", NULL) else written


def offered(
    text: bytes, span: Span, name: str, tool: CachedTool, *, hosted: bool = False, searches: bool = False
) -> OfferedTool:
    """A tool of an array. Raises RequestNotUnderstood for a callable tool without a name."""
    if not (name or hosted):
        raise RequestNotUnderstood("A tool of the request has no name.", remedy="Give every function a name.")
    return OfferedTool(
        name=name,
        definition=text[span.start : span.end],
        span=span,
        hosted=hosted,
        deferred=tool.defer_loading is True,
        searches=searches,
        breakpoint=breakpoint_of(tool),
    )


def offered_plainly(text: bytes, span: Span, name: str, *, hosted: bool = False) -> OfferedTool:
    """A tool that carries nothing besides its definition. Raises RequestNotUnderstood as `offered` does."""
    return offered(text, span, name, CachedTool(), hosted=hosted)
