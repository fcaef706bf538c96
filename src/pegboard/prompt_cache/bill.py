"""The cost of a request's input, in plain input tokens.

Tools come first in what a provider caches: a request with the same tools as the one before reads the whole prefix T + H
at r a token, and one with different tools writes it again at w. With n turns to come, including this one,

    keep   = n·r·(T + H)
    change = w′·(T′ + H) + (n − 1)·r′·(T′ + H)

Here H grows from turn to turn, a later turn may come too late to find its prefix, and it may need a missing tool, which
is another change.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from pegboard.prompt_cache.cache_prices import CachePrices


@dataclass(frozen=True, slots=True, kw_only=True)
class Outlook:
    """What is expected of the turns to come, including this one.

    ``growth``: tokens that each turn adds. ``returns``: the probability that a turn comes within the cache's lifetime.
    ``addition``: tokens of the tools that are added in front if a turn needs a missing one.
    """

    turns: float
    growth: float
    returns: float
    addition: float = 0.0


def turn(prefix: float, new: float, warm: float, prices: CachePrices, salvaged: float = 0.0) -> float:
    """The bill of one request: a prefix that is cached with probability ``warm``, and tokens that are always new.

    Below the provider's minimum length nothing is written or read: a token costs 1.
    """
    write = prices.write if prefix + new >= prices.minimum else 1.0
    read = warm * prices.read + (1 - warm) * write if prefix >= prices.minimum else write
    return read * prefix + write * new - (1 - warm) * salvaged


def salvage(beginning: float, kept: float, prices: CachePrices) -> float:
    """The saving on a cold prefix whose beginning other conversations keep cached with probability ``kept``."""
    return kept * (prices.write - prices.read) * beginning if beginning >= prices.minimum else 0.0


def later(prefix: float, outlook: Outlook, prices: CachePrices, *, news: float = 0.0, salvaged: float = 0.0) -> float:
    """The bill of the n − 1 turns after one that left ``prefix`` tokens, tools and history, in the cache.

    ``news``: the probability that a turn needs a missing tool, so that everything is written again. ``salvaged``: the
    saving on a turn that comes too late, because other conversations kept the beginning of the prefix cached.
    """
    turns = max(outlook.turns - 1, 0.0)
    step = outlook.growth + news * outlook.addition
    short = _turns_below(prices.minimum - prefix, step, turns)
    grown = prefix + step * short
    plain = short * prefix + step * short * (short + 1) / 2
    first_write = (prices.write - 1) * grown if short and grown >= prices.minimum else 0.0
    warm = outlook.returns * (1 - news)
    price = warm * prices.read + (1 - warm) * prices.write
    long = turns - short
    cached = long * grown + step * long * (long - 1) / 2
    missed = (1 - outlook.returns) * salvaged
    return plain + first_write + price * cached + long * (prices.write * outlook.growth - missed)


def _turns_below(lacking: float, step: float, turns: float) -> float:
    """How many of these turns have a prefix that is too short to be cached."""
    if lacking <= 0 or step <= 0:
        return turns if lacking > 0 else 0.0
    return min(float(math.ceil(lacking / step)), turns)
