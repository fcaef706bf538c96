"""What a conversation was billed so far, and what it would have been with all tools: a way that is dearer is left.

The first request without most tools leaves a credit; every later change, called-back tool and search round is paid
from it. A conversation that is dearer by now goes on while its loss is less than what it would cost to write the other
tools too, as one rents until the rents have come to the price. The change with which it gets there is made with all
tools, and they stay. So what is lost is at most twice that price, and one change; or `MOST_LOSS`, where that is more.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from pegboard.prompt_cache.bill import turn
from pegboard.prompt_cache.prices import CachePrices
from pegboard.prompt_cache.rule import Moment

MOST_LOSS = 0.02
"""Share of the bill with all tools that a conversation may be dearer by in any case."""
EXCHANGE = 100
"""Tokens that a round adds where nobody counts them: a short call, and its answer."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Account:
    """Sums over a conversation's requests, in tokens of plain input: as it was sent, and had it all tools."""

    billed: float = 0.0
    whole: float = 0.0

    def after(self, billed: float, whole: float = 0.0) -> Account:
        """With a request more; one that would not have been with all tools costs nothing there."""
        return Account(billed=self.billed + billed, whole=self.whole + whole)

    def corrected(self, expected: float, billed: float) -> Account:
        """What a provider says in place of what was expected: what it counts otherwise it would have in both."""
        return Account(billed=self.billed + billed - expected, whole=self.whole + billed - expected)

    def has_lost(self, rest: float) -> bool:
        """Whether it is dearer by more than the other tools cost to write, and not just by chance."""
        return self.billed - self.whole > max(rest, MOST_LOSS * self.whole)


def rounds_bill(rounds: Sequence[frozenset[int]], moment: Moment, prices: CachePrices) -> float:
    """Of the further requests that a request led to, by the tools that each went out with; the first of ``rounds`` are
    those of the request itself. Where tools came, everything is written anew."""
    bill, behind = 0.0, moment.behind + moment.ahead
    for before, now in pairwise(rounds):
        prefix = sum(moment.tokens[place] for place in now) + behind
        bill += turn(prefix, EXCHANGE, float(now == before), prices)
        behind += EXCHANGE
    return bill


NOTHING_YET = Account()
