"""What a conversation has been billed, compared with sending all tools: a way that proves dearer is abandoned.

Leaving out most tools in the first request earns a credit; every later change, called-back tool and search round is
paid from it. A conversation that is dearer by now continues while its loss is below the cost of writing the remaining
tools (the ski-rental rule). The change at which the loss reaches that cost is made with all tools, and they stay. So
the loss is at most twice that cost plus one change, or `MOST_LOSS` if that is more.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from pegboard.prompt_cache.bill import turn
from pegboard.prompt_cache.cache_prices import CachePrices
from pegboard.prompt_cache.rule import Moment, tokens_sent

MOST_LOSS = 0.02
"""Share of the bill with all tools that a conversation may always lose."""
EXCHANGE = 100
"""Tokens that a round adds if nobody counts them: a short call and its result."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CacheAccount:
    """Sums over a conversation's requests, in plain input tokens: as sent, and as if all tools had been sent."""

    billed: float = 0.0
    whole: float = 0.0

    def after(self, billed: float, whole: float = 0.0) -> CacheAccount:
        """After one more request; a request that would not occur with all tools costs nothing in ``whole``."""
        return CacheAccount(billed=self.billed + billed, whole=self.whole + whole)

    def corrected(self, expected: float, billed: float) -> CacheAccount:
        """Replace the expected bill with the provider's: the difference applies to both sums."""
        return CacheAccount(billed=self.billed + billed - expected, whole=self.whole + billed - expected)

    def has_lost(self, rest: float) -> bool:
        """Whether the loss exceeds the cost of writing the remaining tools and is not just noise."""
        return self.billed - self.whole > max(rest, MOST_LOSS * self.whole)


def rounds_bill(rounds: Sequence[frozenset[int]], moment: Moment, prices: CachePrices) -> float:
    """The bill of the repeated requests, given the tools that each went out with; the first of ``rounds`` are the tools
    of the request itself. If tools were added, the whole prefix is written again."""
    bill, behind = 0.0, moment.behind + moment.ahead
    for before, now in pairwise(rounds):
        prefix = tokens_sent(now, moment) + behind
        bill += turn(prefix, EXCHANGE, float(now == before), prices)
        behind += EXCHANGE
    return bill


NOTHING_YET = CacheAccount()
