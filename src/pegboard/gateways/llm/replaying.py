"""What a request's own history says that its conversation was sent with, whoever sent it (P3, P19)."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import replace

from pegboard.gateways.llm.boards import Pick, Stock
from pegboard.gateways.llm.codec import Choice, Request
from pegboard.gateways.llm.past import Ask, Stage
from pegboard.gateways.llm.settling import Known, Terms, named, settled
from pegboard.seams import Filter

MOST_PICKS = 1024
"""Picks of earlier asks that are remembered for one array of tools."""
JUST_NOW = 0.0


async def replayed(request: Request, stock: Stock, asks: Sequence[Ask], among: Filter | None, terms: Terms) -> Known:
    """What these asks made of the tools one after the other, as if each had come right after the one before: what is
    held, was relevant and billed, and whether all tools are, for that was less. What they said about calling tools is
    not known, nor what a loop was billed.
    """
    picks = await picks_of(stock, asks, among)
    known = Known(stage=Stage())
    for ask in asks:
        earlier = replace(request, turn=ask.turn, called=ask.stage.called, choice=Choice())
        found = settled(earlier, stock, terms, picks[ask.query], replace(known, stage=ask.stage), known.way or "tools")
        relevant = known.relevant.after(found.moment.relevant, named(request, ask.stage.called), known.held)
        known = replace(
            known,
            held=frozenset(found.kept.places),
            idle=JUST_NOW,
            relevant=relevant,
            way="whole" if found.leaves else known.way,
            account=found.account,
        )
    return replace(known, held=known.held or frozenset(), idle=JUST_NOW)


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
