"""What was expected of a request that went out, until its answer says what came of it. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from pegboard.gateways.llm.codec import Request, Usage
from pegboard.gateways.llm.conversations import Thread
from pegboard.gateways.llm.settling import Known
from pegboard.prompt_cache import CachePrices, Moment, Turned, rounds_bill
from pegboard.prompt_cache.account import EXCHANGE
from pegboard.settings.llm import Way

Places = frozenset[int]


@dataclass(frozen=True, slots=True, kw_only=True)
class Receipt:
    """A request of a thread: what is known of it with this request, and the bill that was ``expected`` of that."""

    thread: Thread
    key: str
    system: str
    request: Request
    known: Known
    way: Way
    moment: Moment
    prices: CachePrices
    expected: float

    def after(self, rounds: Sequence[Places], used: Usage | None) -> Known:
        """What is known once it is answered. ``rounds`` are the tools that it went out with, first and each time that
        it was asked again; ``used`` is what the provider counted of all of them."""
        extra = rounds_bill(rounds, self.moment, self.prices)
        account = self.known.account.after(extra)
        if used is not None and used.input:
            account = account.corrected(self.expected + extra, billed(used, self.prices))
        relevant = self.known.relevant
        relevant = replace(relevant, changed=relevant.changed + sum(1 for _ in _came(rounds)))
        return replace(self.known, account=account, relevant=relevant)

    def turns(self, rounds: Sequence[Places]) -> Iterator[Turned]:
        """What the rounds teach: each that brought tools is a turn more, which wanted what was not there."""
        for new in _came(rounds):
            tokens = sum(self.moment.tokens[place] for place in new)
            wanted = sum(self.moment.tokens[place] for place in self.moment.relevant)
            yield Turned(first=False, ahead=EXCHANGE, wanted=wanted + tokens, added=tokens, called=tokens, changed=True)


def billed(used: Usage, prices: CachePrices) -> float:
    """In tokens of plain input."""
    plain = used.input - used.cache_read - used.cache_write
    return prices.read * used.cache_read + prices.write * used.cache_write + max(plain, 0)


def _came(rounds: Sequence[Places]) -> Iterator[Places]:
    """The tools that each round brought, of those that brought any."""
    for before, now in pairwise(rounds):
        if now - before:
            yield now - before
