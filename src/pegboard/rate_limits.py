"""How often something may happen: the generic cell rate algorithm (ITU-T I.371, annex A), one number for each limit."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

ROUNDING = 0.001
"""Seconds by which sums of times may be off: a moment of today has a resolution of a quarter of a microsecond."""

CLOCKS_APART = 60.0
"""Seconds by which the clocks of replicas may differ."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RateMeter:
    """A limit and whom it counts: ``calls`` in any ``seconds``, all of which may come at once."""

    key: str
    calls: int
    seconds: float

    @property
    def interval(self) -> float:
        """T, the emission interval in seconds."""
        return self.seconds / self.calls

    @property
    def tolerance(self) -> float:
        """τ, the limit in seconds."""
        return self.seconds - self.interval


def admission(
    meters: Sequence[RateMeter], arrivals: Mapping[str, float], now: float
) -> tuple[float, Mapping[str, float]]:
    """Seconds to wait, 0 if all meters admit a call now; and the theoretical arrival times after it.

    ``arrivals`` has those before, by key. A call that any meter refuses counts nowhere. An arrival further ahead than
    calls can bring it was counted before the clock was set back: one call passes, and is counted anew.

    >>> admission([RateMeter(key="ann", calls=2, seconds=10)], {"ann": 105.0}, now=100.0)
    (0.0, {'ann': 110.0})
    >>> admission([RateMeter(key="ann", calls=2, seconds=10)], {"ann": 110.0}, now=101.0)
    (4.0, {})
    """
    known = {meter.key: max(now, arrivals.get(meter.key, 0.0)) for meter in meters}
    for meter in meters:
        if known[meter.key] > now + meter.seconds + CLOCKS_APART:
            known[meter.key] = now + meter.tolerance
    wait = max((known[meter.key] - meter.tolerance - now for meter in meters), default=0.0)
    if wait > ROUNDING:
        return wait, {}
    return 0.0, {meter.key: known[meter.key] + meter.interval for meter in meters}
