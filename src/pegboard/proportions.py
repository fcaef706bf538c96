"""Confidence intervals for a proportion and for the difference of two paired proportions.

Both methods assume independent observations. Calls of one conversation are not quite independent, so that the true
value lies outside the interval somewhat more often than the level says.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import sqrt
from statistics import NormalDist

Z = NormalDist().inv_cdf(0.975)
"""The quantile for 95% intervals."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Share:
    """A proportion with its confidence interval."""

    value: float
    low: float
    high: float


def wilson(hits: int, of: int) -> Share | None:
    """The share of hits with the score interval (Wilson 1927); None if ``of`` is 0.

    >>> round(wilson(0, 10).high, 3)
    0.278
    """
    if of == 0:
        return None
    value, weight = hits / of, Z * Z / of
    middle = (value + weight / 2) / (1 + weight)
    reach = sqrt(weight * value * (1 - value) + weight * weight / 4) / (1 + weight)
    low = 0.0 if hits == 0 else middle - reach
    return Share(value=value, low=low, high=1.0 if hits == of else middle + reach)


def paired_difference(both: int, first: int, second: int, neither: int) -> Share | None:
    """The second proportion minus the first, from paired counts: hits of both, of the first alone, of the second alone,
    of neither. None without observations.

    Newcombe 1998 (Statistics in Medicine 17, 2635-2650), method 10: the two score intervals and their correlation.
    """
    of = both + first + second + neither
    before, after = wilson(both + first, of), wilson(both + second, of)
    if before is None or after is None:
        return None
    together = _correlation(both, first, second, neither)
    difference = after.value - before.value

    def reach(one: float, other: float) -> float:
        return sqrt(max(0.0, one * one - 2 * together * one * other + other * other))

    return Share(
        value=difference,
        low=difference - reach(after.value - after.low, before.high - before.value),
        high=difference + reach(after.high - after.value, before.value - before.low),
    )


def _correlation(both: int, first: int, second: int, neither: int) -> float:
    """The phi coefficient of the table; a positive one is reduced by a continuity correction."""
    margins = (both + first) * (second + neither) * (both + second) * (first + neither)
    if margins == 0:
        return 0.0
    surplus = both * neither - first * second
    corrected = max(surplus - (both + first + second + neither) / 2, 0.0) if surplus > 0 else surplus
    return corrected / sqrt(margins)
