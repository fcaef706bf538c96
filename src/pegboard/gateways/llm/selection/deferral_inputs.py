"""What a deferral is made from: the search tool for a request's tools, and what is relevant to the user's messages."""

from __future__ import annotations

import asyncio
from dataclasses import replace

from pegboard.gateways.llm.call_tool.disclosure import disclosure
from pegboard.gateways.llm.formats.registry import deferral_of
from pegboard.gateways.llm.selection.board_cache import Pick
from pegboard.gateways.llm.selection.deferral import DeferralPlan, DeferralSearch, deferral_plan, search_of
from pegboard.gateways.llm.selection.selection_context import SelectionContext
from pegboard.gateways.llm.tool_search.tool import FOUND
from pegboard.gateways.llm.tool_search.tool import NAME as SEARCH
from pegboard.model import Decision

LARGE = 512 * 1024
"""Bodies of at least so many bytes are rewritten off the event loop."""


async def deferral_of_request(context: SelectionContext, decision: Decision, pick: Pick, missing: str) -> DeferralPlan:
    """Which tools are deferred, and which of them the history refers to. Raises RequestNotUnderstood."""
    request, board, profile, terms = context.request, context.board, context.policy.profile, context.terms
    codec = deferral_of(context.codec)
    if codec is None:
        raise ValueError(f"Requests in the format {context.codec.name!r} have no deferred tools.")
    decided = {} if missing else {decision.query: pick}
    most = FOUND if any(tool.protected for tool in request.tools) else None
    relevant = replace(terms, always=frozenset())
    shown = await disclosure(request, board, profile.query, context.among, relevant, decided, most=most)
    found = await search_of_request(context)
    if len(request.body) < LARGE:
        return deferral_plan(codec, request, board, terms, found, shown.before)
    return await asyncio.to_thread(deferral_plan, codec, request, board, terms, found, shown.before)


async def search_of_request(context: SelectionContext) -> DeferralSearch:
    """The search tool. Shared by all requests with these tools, and made off the event loop (P25)."""
    request, board, terms, budget = context.request, context.board, context.terms, context.policy.search_tokens
    taken = frozenset(name for name in request.called | request.referenced if name.startswith(SEARCH))
    key = ("defer", terms.barred, budget, taken)
    found = board.told.get(key)
    if isinstance(found, DeferralSearch):
        return found
    made = await asyncio.to_thread(search_of, request, board, terms, budget)
    board.tell(key, made)
    return made
