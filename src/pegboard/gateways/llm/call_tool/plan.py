"""Whether a request's tools are called through `call_tool`, and the resulting body."""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Mapping
from dataclasses import dataclass

from pegboard.errors import RequestNotUnderstood
from pegboard.gateways.llm.call_tool import prompts
from pegboard.gateways.llm.call_tool.disclosure import Disclosure
from pegboard.gateways.llm.call_tool.exchange import CallToolGate, CallToolRoundTrip, CallToolSearchCodec
from pegboard.gateways.llm.formats.call_tool import CallTool, CallToolCodec
from pegboard.gateways.llm.formats.json_spans import splice
from pegboard.gateways.llm.formats.protocol import Codec, LlmRequest
from pegboard.gateways.llm.formats.registry import call_tool_of, tool_search_of
from pegboard.gateways.llm.formats.tool_search import ToolSearchCodec
from pegboard.gateways.llm.selection.board_cache import ToolBoard
from pegboard.model import Tokens, Tool
from pegboard.routing import Profile
from pegboard.wire_formats import free_name


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolTexts:
    """The texts for one array of tools. ``entry`` is `call_tool` as the request offers it, under the name ``own``;
    ``lines`` are definitions by place.

    Tokens are those of the entry, of each line, and of the frame around the lines of a message.
    """

    own: str
    entry: bytes
    tools: Mapping[int, Tool]
    lines: Mapping[int, str]
    entry_tokens: int
    line_tokens: Mapping[int, int]
    frame_tokens: int


@dataclass(frozen=True, slots=True, kw_only=True)
class CallToolPlan:
    """What a request discloses: the pool of all tools, and the definitions ``disclosure`` before each user message."""

    texts: ToolTexts
    disclosure: Disclosure
    barred: frozenset[int]

    def tokens(self, fixed: int) -> Tokens:
        """The tokens of the tools as sent: ``fixed`` for tools that stay, the entry, and all definitions shown."""
        shown = sum(self.texts.line_tokens[place] for place in self.disclosure.places)
        return Tokens(fixed + self.texts.entry_tokens + shown + len(self.disclosure.before) * self.texts.frame_tokens)


def closed(codec: Codec, request: LlmRequest, url_query: str) -> str:
    """Why a request's tools cannot be called through `call_tool`; empty if they can."""
    codecs = _codecs(codec)
    if codecs is None:
        return "this format has no calls"
    search_codec, call_codec = codecs
    if request.choice.names is not None:
        return "it says which tools may be called"
    if request.has_own_search:
        return "its tools are searched for"
    return search_codec.closed(request, url_query) or call_codec.closed(request)


async def prepared(
    codec: Codec,
    request: LlmRequest,
    board: ToolBoard,
    disclosure: Disclosure,
    *,
    barred: Collection[int],
    budget: int | None,
) -> CallToolPlan:
    """The plan for a request that is not `closed`; ``budget`` is the pool's."""
    texts = await texts_of(_codecs_for(codec)[1], request, board, barred, budget)
    return CallToolPlan(texts=texts, disclosure=disclosure, barred=frozenset(barred))


async def constant_of(
    codec: Codec, request: LlmRequest, board: ToolBoard, barred: Collection[int], profile: Profile
) -> Tokens:
    """The tokens of `call_tool` with its pool, which all conversations with these tools begin with."""
    texts = await texts_of(_codecs_for(codec)[1], request, board, barred, profile.pool)
    return Tokens(texts.entry_tokens)


def round_trip_of(codec: Codec, request: LlmRequest, plan: CallToolPlan) -> CallToolRoundTrip:
    """Raises RequestNotUnderstood."""
    texts, (inner, call_codec) = plan.texts, _codecs_for(codec)
    callable_: dict[str, list[Tool]] = {}
    for place, tool in texts.tools.items():
        if place not in plan.barred or tool.name in request.called:
            callable_.setdefault(tool.name, []).append(tool)
    shown = {texts.tools[place].name for place in plan.disclosure.places}
    gate = CallToolGate(own=texts.own, callable=callable_, shown=shown)
    listed = request.fields.get("tools")
    offered = request.text[slice(*listed.value)] if listed else b"[]"
    search_codec = CallToolSearchCodec(inner, call_codec, gate, offered=offered)
    fixed = {place for place, tool in enumerate(request.tools) if tool.stays}
    sent = frozenset(plan.disclosure.places | fixed)
    return CallToolRoundTrip(format=search_codec, gate=gate, rewritten=_body(call_codec, request, plan), sent=sent)


def _codecs_for(codec: Codec) -> tuple[ToolSearchCodec, CallToolCodec]:
    """For a request that is not `closed`."""
    codecs = _codecs(codec)
    if codecs is None:
        raise ValueError(f"Requests in the format {codec.name!r} have no `call_tool`.")
    return codecs


def _codecs(codec: Codec) -> tuple[ToolSearchCodec, CallToolCodec] | None:
    """The codecs of this format. It has both or neither: an invalid call is answered like a search."""
    search_codec, call_codec = tool_search_of(codec), call_tool_of(codec)
    return None if search_codec is None or call_codec is None else (search_codec, call_codec)


def _body(call_codec: CallToolCodec, request: LlmRequest, plan: CallToolPlan) -> bytes:
    texts, spots = plan.texts, call_codec.spots(request)
    before: Mapping[int, tuple[int, ...]] = plan.disclosure.before
    if before and max(before) >= len(spots):
        raise RequestNotUnderstood(
            f"The user's text is in an unknown place in some messages; {len(spots)} are understood.",
            remedy="Send texts as strings.",
        )
    shown = {number: prompts.shown((texts.lines[place] for place in new), texts.own) for number, new in before.items()}
    return splice(
        request.body,
        [
            *call_codec.tools(request, texts.entry),
            *call_codec.calls(request, texts.own),
            *(spots[number](text) for number, text in shown.items()),
        ],
    )


async def texts_of(
    call_codec: CallToolCodec, request: LlmRequest, board: ToolBoard, barred: Collection[int], budget: int | None
) -> ToolTexts:
    """The texts of all tools except the barred; ``budget`` is the pool's. Shared by all requests with these tools, and
    made off the event loop (P25)."""
    key = (frozenset(barred), budget)
    found = board.told.get(key)
    if isinstance(found, ToolTexts):
        return found
    made = await asyncio.to_thread(_made, call_codec, request, board, barred, budget)
    board.tell(key, made)
    return made


def _made(
    call_codec: CallToolCodec, request: LlmRequest, board: ToolBoard, barred: Collection[int], budget: int | None
) -> ToolTexts:
    catalog, count = board.routing.catalog, board.routing.catalog.counter.count
    tools = {place: call_codec.described(catalog[tool]) for place, tool in sorted(board.ids.items())}
    pool = [tool for place, tool in tools.items() if place not in barred]
    own = free_name(prompts.NAME, request.names)
    description = prompts.description(pool, catalog.counter, budget)
    entry = call_codec.offer(CallTool(name=own, description=description, breakpoint=_breakpoint(request)))
    lines = {place: prompts.definition(tool) for place, tool in tools.items()}
    whole, frame, *each = count([entry.decode(), prompts.shown([], own), *lines.values()])
    return ToolTexts(
        own=own,
        entry=entry,
        tools=tools,
        lines=lines,
        entry_tokens=whole,
        line_tokens=dict(zip(lines, each, strict=True)),
        frame_tokens=frame,
    )


def _breakpoint(request: LlmRequest) -> bytes | None:
    """The cache breakpoint for `call_tool` (P20): that of the tools it replaces, or that of a tool that stays before
    it, as a longer lifetime may not follow a shorter one."""
    ours = [tool.breakpoint for tool in request.tools if tool.breakpoint and not tool.stays]
    fixed = [tool.breakpoint for tool in request.tools if tool.breakpoint and tool.stays]
    return (fixed[-1] if fixed else ours[0]) if ours else None
