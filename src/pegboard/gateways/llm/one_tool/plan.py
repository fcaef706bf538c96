"""Whether a request's tools are called through one, and what its body then is."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass

from pegboard.errors import RequestNotUnderstood
from pegboard.gateways.llm.boards import Stock
from pegboard.gateways.llm.codec import Codec, Request
from pegboard.gateways.llm.one_tool import DIALECTS, told
from pegboard.gateways.llm.one_tool.format import OneToolFormat
from pegboard.gateways.llm.one_tool.gate import Gate
from pegboard.gateways.llm.one_tool.showing import Showing
from pegboard.gateways.llm.one_tool.texts import Texts, texts_of
from pegboard.gateways.llm.one_tool.way import OneToolWay
from pegboard.gateways.llm.one_tool.wire import Dialect
from pegboard.gateways.llm.spans import splice
from pegboard.gateways.llm.way_back import FORMATS
from pegboard.model import Tokens, Tool
from pegboard.routing import Profile


@dataclass(frozen=True, slots=True, kw_only=True)
class Prepared:
    """What a request is told: of all tools, and before each message of the user's of those ``showing``."""

    texts: Texts
    showing: Showing
    barred: frozenset[int]

    def tokens(self, fixed: int) -> Tokens:
        """Of the tools as they go out, ``fixed`` being those of the ones that stay, and of all definitions shown."""
        shown = sum(self.texts.line_tokens[place] for place in self.showing.places)
        return Tokens(fixed + self.texts.entry_tokens + shown + len(self.showing.before) * self.texts.frame_tokens)


def closed(codec: Codec, request: Request, url_query: str) -> str:
    """Why a request's tools cannot be called through one; empty where they can."""
    dialect, format_ = DIALECTS.get(codec.name), FORMATS.get(codec.name)
    if dialect is None or format_ is None:
        return "this format has no calls"
    if request.choice.names is not None:
        return "it says which tools may be called"
    if request.referenced or any(tool.deferred or tool.searches for tool in request.tools):
        return "its tools are searched for"
    return format_.closed(request, url_query) or dialect.closed(request)


async def prepared(
    codec: Codec, request: Request, stock: Stock, showing: Showing, *, barred: Collection[int], budget: int | None
) -> Prepared:
    """``budget`` is that of the pool. For a request that is not `closed`."""
    texts = await texts_of(codec, DIALECTS[codec.name], request, stock, barred, budget)
    return Prepared(texts=texts, showing=showing, barred=frozenset(barred))


async def constant_of(
    codec: Codec, request: Request, stock: Stock, barred: Collection[int], profile: Profile
) -> Tokens:
    """Tokens of `call_tool` with its pool, which all conversations with these tools begin with."""
    texts = await texts_of(codec, DIALECTS[codec.name], request, stock, barred, profile.pool)
    return Tokens(texts.entry_tokens)


def way_of(codec: Codec, request: Request, plan: Prepared) -> OneToolWay:
    """Raises RequestNotUnderstood."""
    texts, dialect = plan.texts, DIALECTS[codec.name]
    callable_: dict[str, list[Tool]] = {}
    for place, tool in texts.tools.items():
        if place not in plan.barred or tool.name in request.called:
            callable_.setdefault(tool.name, []).append(tool)
    shown = {texts.tools[place].name for place in plan.showing.places}
    gate = Gate(own=texts.own, callable=callable_, shown=shown)
    start, end = request.fields["tools"].value
    format_ = OneToolFormat(FORMATS[codec.name], dialect, gate, offered=request.text[start:end])
    fixed = {place for place, tool in enumerate(request.tools) if tool.stays}
    sent = frozenset(plan.showing.places | fixed)
    return OneToolWay(format=format_, gate=gate, rewritten=_body(dialect, request, plan), sent=sent)


def _body(dialect: Dialect, request: Request, plan: Prepared) -> bytes:
    texts, spots = plan.texts, dialect.spots(request)
    before: Mapping[int, tuple[int, ...]] = plan.showing.before
    if before and max(before) >= len(spots):
        raise RequestNotUnderstood(
            f"The user says something in {len(spots)} messages, or in more.", remedy="Send texts as strings."
        )
    shown = {number: told.shown((texts.lines[place] for place in new), texts.own) for number, new in before.items()}
    return splice(
        request.body,
        [
            *dialect.tools(request, texts.entry),
            *dialect.calls(request, texts.own),
            *(spots[number](text) for number, text in shown.items()),
        ],
    )
