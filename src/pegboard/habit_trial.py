"""The trial of what use teaches: does the order that it changes find the called tools more often?

Each call compares two orders of one request: as taught, and as without it. Only calls that one order has among its
first `FIRST` tools and the other has not say which is better. While the taught order is not used, the trial looks for
evidence that it is better; while it is used, for evidence that it is worse. The evidence is a test martingale: it
multiplies 1 + λ for a call that only the one order finds, and 1 - λ for one that only the other finds. If the one is in
truth not better, it ever reaches 1/α with a probability of at most α, whenever one looks (Ville 1939; Shafer 2021,
Testing by betting).

An epoch ends when the evidence suffices or after `LONGEST_EPOCH` such calls; the next one begins without evidence, so
that habits that changed are noticed. Counts fade, which only weakens evidence.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from pegboard.model import Floats
from pegboard.proportions import Share, paired_difference

FIRST = 5
"""Tools of an order in which a call counts as found."""
STAKE = 0.25
"""λ."""
ALPHA = 0.05
LONGEST_EPOCH = 60
"""Calls on which the orders differ, after which an epoch ends."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Trial:
    """An epoch of a trial: whether the taught order ``is_used``, and the calls by who found them."""

    epoch: int = 0
    is_used: bool = False
    both: float = 0.0
    untaught: float = 0.0
    taught: float = 0.0
    neither: float = 0.0

    @property
    def row(self) -> str:
        """The name of its row. Of two rows of an epoch, the one that does not use the taught order counts.

        >>> Trial(epoch=3, is_used=True).row
        '000003 used'
        """
        return f"{self.epoch:06d} {'used' if self.is_used else 'unused'}"

    @property
    def sums(self) -> Floats:
        return np.array([self.both, self.untaught, self.taught, self.neither], np.float32)

    @property
    def calls(self) -> float:
        return self.both + self.untaught + self.taught + self.neither

    def next(self) -> Trial | None:
        """The next epoch, if this one is over."""
        gain, loss = (self.untaught, self.taught) if self.is_used else (self.taught, self.untaught)
        if gain * math.log1p(STAKE) + loss * math.log1p(-STAKE) >= -math.log(ALPHA):
            return Trial(epoch=self.epoch + 1, is_used=not self.is_used)
        if gain + loss >= LONGEST_EPOCH:
            return Trial(epoch=self.epoch + 1, is_used=self.is_used)
        return None

    def difference(self) -> Share | None:
        """Calls that the taught order finds minus those that the other finds, as shares of all, with the 95% interval
        of this epoch; None without calls."""
        both, untaught, taught, neither = (round(each) for each in self.sums.tolist())
        return paired_difference(both, untaught, taught, neither)


def observation(*, untaught: bool, taught: bool) -> Floats:
    """One call as `Trial.sums`: whether each order found it."""
    return replace(
        Trial(),
        both=float(untaught and taught),
        untaught=float(untaught and not taught),
        taught=float(taught and not untaught),
        neither=float(not untaught and not taught),
    ).sums


def trial_of(rows: Mapping[str, Floats]) -> Trial:
    """The current epoch, from the sums of all rows by name.

    >>> trial_of({"000001 used": np.array([0, 0, 3, 0]), "000000 unused": np.array([9, 0, 9, 0])}).taught
    3.0
    """
    if not rows:
        return Trial()
    latest = max(rows, key=lambda name: (name[:6], name.endswith("unused")))
    both, untaught, taught, neither = map(float, rows[latest])
    return Trial(
        epoch=int(latest[:6]),
        is_used=not latest.endswith("unused"),
        both=both,
        untaught=untaught,
        taught=taught,
        neither=neither,
    )
