"""Where a request stands in its conversation: what is held, what traffic like it has taught, and which way it takes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from pegboard.gateways.llm.boards import Stock
from pegboard.gateways.llm.codec import Request, Usage
from pegboard.gateways.llm.conversations import Conversations, Thread, thread_of
from pegboard.gateways.llm.learning import NOTHING, Learning, turned
from pegboard.gateways.llm.past import Past
from pegboard.gateways.llm.receipts import Receipt
from pegboard.gateways.llm.replaying import JUST_NOW, picks_of, replayed
from pegboard.gateways.llm.settling import Known, Relevant, Settled, Terms, named
from pegboard.prompt_cache import WAYS, Moment, cheapest_way
from pegboard.retrieval import QueryKind
from pegboard.seams import Clock, Filter
from pegboard.settings.llm import Way

Places = frozenset[int]
LEAST_SEEN = 5
"""Conversations of a key, before any other way than picking is taken."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """A request's place. ``key`` is what its traffic is learnt under."""

    thread: Thread
    past: Past
    terms: Terms
    key: str
    known: Known


class Sticking:
    """Knows what conversations hold. Without a clock only what their own histories say, and nothing is learnt."""

    def __init__(self, clock: Clock | None, learning: Learning | None = None) -> None:
        self._conversations = None if clock is None else Conversations(clock)
        self._learning = Learning(clock) if learning is None and clock is not None else learning

    async def place(
        self, owner: str, request: Request, stock: Stock, terms: Terms, kind: QueryKind, among: Filter | None
    ) -> Place:
        """Of a request whose queries are of this kind; ``among`` are the tools that could be picked.

        A history that this process did not serve was served by another one, which says nothing of when: it counts as
        warm, so that replicas agree.
        """
        place = self._remembered(owner, request, stock, terms, kind)
        past, known = place.past, place.known
        if known.held is None and past.is_answered:
            again = await replayed(request, stock, tuple(past.asks()), among, terms)
            known = replace(again, stage=known.stage, whole_idle=known.whole_idle, looping=known.looping)
        return replace(place, known=known)

    async def begun(
        self, owner: str, request: Request, stock: Stock, terms: Terms, kind: QueryKind, among: Filter | None
    ) -> Place:
        """The same where tools stay as the first request had them: of a history that is all that is looked at."""
        place = self._remembered(owner, request, stock, terms, kind)
        known, first = place.known, place.past.first
        if known.held is None and first is None:
            known = replace(known, held=frozenset())
        elif known.held is None and first is not None and place.past.is_answered:
            pick = (await picks_of(stock, [first], among))[first.query]
            known = replace(known, held=frozenset(pick.relevant), idle=JUST_NOW)
        return replace(place, known=known)

    def _remembered(self, owner: str, request: Request, stock: Stock, terms: Terms, kind: QueryKind) -> Place:
        """As far as this process served it."""
        past = Past(request.turn, kind)
        thread = thread_of(owner, request, past)
        key = "" if self._learning is None else self._learning.key(owner, request.model, past.system, stock.digest)
        known = Known(stage=past.now)
        if self._conversations is not None:
            known = self._conversations.known(thread, known.stage, request, past.system)
        return Place(thread=thread, past=past, terms=terms, key=key, known=replace(known, looping=past.looping))

    def way(self, place: Place, stock: Stock, ways: Sequence[Way], constant: float) -> Way:
        """A conversation keeps its way; a new one takes the cheapest, by what others of its key were like.

        One that another process began is chosen for anew, by the same sums. As long as too few conversations were seen
        for that, tools are picked, or where that is none of the ways the priors hold. ``constant`` are the tokens of
        `call_tool`, where that is one of the ways.
        """
        if place.known.way is not None and place.known.way in ways:
            return place.known.way
        priced = [way for way in WAYS if way in ways]
        seen = None if self._learning is None else self._learning.seen(place.key)
        known = seen is not None and seen.conversations >= LEAST_SEEN
        if len(priced) < len(ways) or not (known or "call_tool" in ways):
            return "tools" if "tools" in ways else ways[0]
        if not known and "tools" in ways:
            return "tools"
        total = sum(stock.tokens[each] for each in stock.ids)
        traffic = (seen if known and seen else NOTHING).traffic(place.known.stage.system, total)
        traffic = replace(traffic, system=traffic.system + sum(stock.tokens) - total)  # what stays is in all of them
        return cheapest_way(traffic, place.terms.prices, total, constant, priced)

    def sent(
        self, place: Place, request: Request, places: Sequence[int], way: Way, found: Settled | None = None
    ) -> Receipt | None:
        """The request goes out with these tools, that way; what it was like is learnt, where the moment is known.

        With the receipt `answered` is told what came of it.
        """
        known = place.known
        if found is not None:
            relevant = known.relevant.after(found.moment.relevant, named(request, request.called), known.held)
            self._learn(place, found.moment, relevant)
            known = replace(known, relevant=relevant, account=found.account)
        if self._conversations is None:
            return None
        self._conversations.sent(place.thread, known, request, place.past.system, places, way)
        if found is None:
            return None
        return Receipt(
            thread=place.thread,
            key=place.key,
            system=place.past.system,
            request=request,
            known=known,
            way=way,
            moment=found.moment,
            prices=place.terms.prices,
            expected=known.account.billed - place.known.account.billed,
        )

    def passed(self, owner: str, request: Request, kind: QueryKind, way: Way) -> None:
        """The request goes out with all its tools, whatever the reason: its conversation holds them from now on."""
        if self._conversations is None or not request.tools:
            return
        past = Past(request.turn, kind)
        thread = thread_of(owner, request, past)
        known = self._conversations.known(thread, past.now, request, past.system)
        self._conversations.sent(thread, known, request, past.system, range(len(request.tools)), way)

    def answered(self, receipt: Receipt, rounds: Sequence[Places], used: Usage | None) -> None:
        """What became of a request: the tools that it went out with, first and each time that it was asked again, and
        what the provider says of all that together, if it does."""
        if self._conversations is None:
            return
        if self._learning is not None:
            for turn in receipt.turns(rounds):
                self._learning.note(receipt.key, turn)
        known = receipt.after(rounds, used)
        places = sorted(rounds[-1])
        self._conversations.sent(receipt.thread, known, receipt.request, receipt.system, places, receipt.way)

    def _learn(self, place: Place, moment: Moment, relevant: Relevant) -> None:
        if self._learning is None:
            return
        known, prices, first = place.known, place.terms.prices, not place.past.is_answered
        returned = known.idle is None or known.idle < prices.ttl
        turn = turned(moment, known.relevant, relevant, first=first, returned=returned)
        if first:
            kept, alike = self._learning.neighbours(place.key, relevant.before, prices)
            turn = replace(turn, kept=kept, alike=alike)
        self._learning.note(place.key, turn)
