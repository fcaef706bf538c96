"""Whether a filtered request has a way back, and which."""

from __future__ import annotations

import asyncio
from collections.abc import Collection
from dataclasses import dataclass

from pegboard.gateways.llm.codec import Codec, Request
from pegboard.gateways.llm.obedience import may_be_picked
from pegboard.gateways.llm.selection import Filtered
from pegboard.gateways.llm.way_back import FORMATS, search
from pegboard.gateways.llm.way_back.way import Way
from pegboard.gateways.llm.way_back.wire import SearchTool
from pegboard.model import Tool, Turn
from pegboard.settings.llm import HiddenCall

SCHEMA_TOKENS = 50
"""What the search tool takes besides its name and description: its one parameter, in any format about as much."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Terms:
    """What a policy says of the way back. ``search_tokens`` is the budget of the pool in the tool's description."""

    offered: bool = False
    hidden_call: HiddenCall = "pass"
    search_tokens: int = 0

    @property
    def any(self) -> bool:
        return self.offered or self.hidden_call != "pass"


def way_of(
    codec: Codec, request: Request, filtered: Filtered, terms: Terms, *, query: str, timeout: float
) -> Way | None:
    """The way back of a request; None where there is none. ``query`` is its URL's, and a search may take ``timeout``
    seconds."""
    stock, format_ = filtered.stock, FORMATS.get(codec.name)
    if not terms.any or stock is None or format_ is None or format_.closed(request, query):
        return None
    kept = frozenset(filtered.kept.places)
    open_ = may_be_picked(request) - filtered.barred
    catalog = stock.board.catalog

    async def find(asked: str, among: Collection[int]) -> dict[int, Tool]:
        async with asyncio.timeout(timeout):
            ranked = await stock.board.rank(Turn.ask(asked))
        places = {stock.places[each.tool]: catalog[each.tool] for each in ranked}
        new = [place for place in places if place in open_ and place not in among]
        return {place: places[place] for place in new[: search.FOUND]}

    tool, tokens = None, 0
    if terms.offered and open_ - kept and may_search(request):
        out = [catalog[stock.ids[place]] for place in sorted(open_ - kept)]
        tool = SearchTool(
            name=search.own_name(request.names | request.called | request.referenced),
            description=search.description(search.pool_of(out, catalog.counter, terms.search_tokens)),
        )
        tokens = catalog.counter.count([tool.name + tool.description])[0] + SCHEMA_TOKENS
    if tool is None and terms.hidden_call == "pass":
        return None
    return Way(
        format=format_,
        codec=codec,
        request=request,
        kept=kept,
        open=open_,
        hidden_call=terms.hidden_call,
        tool=tool,
        find=find,
        tokens=tokens,
    )


def may_search(request: Request) -> bool:
    """Not where the request says which tools may be called, or that none may."""
    return request.choice.mode != "none" and request.choice.names is None
