"""What a request's own history says that its conversation was sent with, whoever sent it (P3, P19)."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import replace

from pegboard.gateways.llm.boards import Pick, Stock
from pegboard.gateways.llm.codec import Choice, Request
from pegboard.gateways.llm.past import Ask
from pegboard.gateways.llm.settling import Known, Relevant, Terms, named, settled
from pegboard.seams import Filter

MOST_PICKS = 1024
"""Picks of earlier asks that are remembered for one array of tools."""
JUST_NOW = 0.0


async def replayed(
    request: Request, stock: Stock, asks: Sequence[Ask], among: Filter | None, terms: Terms
) -> tuple[frozenset[int], Relevant]:
    """What these asks made of the tools one after the other, as if each had come right after the one before, and what
    was relevant to them. What they said about calling tools is not known.
    """
    picks = await picks_of(stock, asks, among)
    held: frozenset[int] | None = None
    relevant = Relevant()
    for ask in asks:
        earlier = replace(request, turn=ask.turn, called=ask.stage.called, choice=Choice())
        known = Known(stage=ask.stage, held=held, idle=None if held is None else JUST_NOW, relevant=relevant)
        found = settled(earlier, stock, terms, picks[ask.query], known)
        held = frozenset(found.kept.places)
        relevant = relevant.after(found.moment.relevant, named(request, ask.stage.called))
    return held or frozenset(), relevant


async def picks_of(stock: Stock, asks: Sequence[Ask], among: Filter | None) -> dict[str, Pick]:
    """By query. Each is routed once, however often it is looked back to (P25), but where it was everything: that may
    have been for want of an encoder."""
    known = {ask.query: stock.picks.get((ask.query, among)) for ask in asks}
    new = {ask.query: ask.turn for ask in asks if known[ask.query] is None}
    routed = await asyncio.gather(*(stock.board.choices(turn, among) for turn in new.values()))
    picks = {query: pick for query, pick in known.items() if pick is not None}
    picks |= {query: stock.pick(choices) for query, choices in zip(new, routed, strict=True)}
    remember(stock, among, picks)
    return picks


def remember(stock: Stock, among: Filter | None, picks: Mapping[str, Pick]) -> None:
    for query, pick in picks.items():
        if len(pick.relevant) < len(stock.ids):
            stock.picks[query, among] = pick
            stock.picks.move_to_end((query, among))
    while len(stock.picks) > MOST_PICKS:
        stock.picks.popitem(last=False)
