"""What use teaches: for each tool one vector, the online logistic regression of its calls on embeddings of requests.

A request q with the probability p of a tool adds (y - p)·η·q to the tool's vector w: y is 1 if the tool was called, and
0 if it was offered and others were called. The tool's log-odds then rise by w·q, within ±`MOST_BOOST`. (The gradient of
the log loss; Bottou 1998, Online learning and stochastic approximations.) Additions commute, so that replicas can share
them, and they fade with a half-life.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from pegboard.model import Floats, ToolId

RATE = 2.0
"""η. Chosen on toolalpaca and nestful, two of the sets on which the fusion is fitted."""
MOST_BOOST = 3.0
"""Most that a tool's log-odds rise or fall."""
LONGEST = 8.0
"""Greatest length of a tool's vector."""
HALF_LIFE = 30 * 86_400.0
"""Seconds after which an addition counts half."""
NAMED, UNNAMED = np.float32(0.999), np.float32(0.998)
"""The least probability of a tool that the request names, and the most of any other (`retrieval.exact_names`)."""
NEVER_CERTAIN = 1e-9
"""Probabilities are kept this far from 0 and 1, so that their log-odds are finite."""


TRIAL = "\ttrial"
"""In place of a server's name: no server has it."""


class HabitKey(NamedTuple):
    """A row: whose habits (`habits_of`), and the tool. A row of the server `TRIAL` is a trial's (`habit_trial`)."""

    key: str
    server: str
    name: str

    @property
    def tool(self) -> ToolId:
        return ToolId(self.server, self.name)


@dataclass(frozen=True, slots=True, kw_only=True)
class Habit:
    """The sums of a row, float32, shape (d,), as of the last addition at ``used``, seconds since the epoch."""

    sums: Floats
    used: float

    def faded(self, now: float, half_life: float = HALF_LIFE) -> Floats:
        """The sums as they count now.

        >>> Habit(sums=np.ones(1, np.float32), used=0.0).faded(HALF_LIFE).tolist()
        [0.5]
        """
        return np.asarray(self.sums * 2 ** (-max(0.0, now - self.used) / half_life), np.float32)

    def joined(self, more: Floats, now: float, half_life: float = HALF_LIFE) -> Habit:
        """The row with more added now. Sums of another width belong to another encoder and are replaced."""
        before = self.faded(now, half_life)
        return Habit(sums=before + more if before.shape == more.shape else more, used=max(now, self.used))


def habits_of(caller: str, board: str) -> str:
    """The key of a caller's habits on a board: the name of the caller's key, and a hash of both.

    >>> habits_of("ada", "mcp").rpartition(":")[0]
    'ada'
    """
    return f"{caller}:{_hash(caller, board)[:32]}"


def within_encoder(key: str, encoder: str) -> str:
    """The key of the rows for one encoder: vectors of two encoders are never added."""
    return f"{key}.{_hash(encoder)[:8]}"


def caller_of(key: str) -> str:
    """The name of the caller's key, as `habits_of` wrote it; empty for callers without one.

    >>> caller_of(habits_of("ada", "mcp")), caller_of(habits_of("repo:org/app", "mcp"))
    ('ada', 'repo:org/app')
    """
    return key.rpartition(":")[0]


def step(query: Floats, probability: float, *, called: bool) -> Floats:
    """(y - p)·η·q, shape (d,)."""
    return np.asarray((float(called) - probability) * RATE * query, np.float32)


def bounded(vector: Floats) -> Floats:
    """The vector, at most `LONGEST` long."""
    length = float(np.linalg.norm(vector))
    return vector if length <= LONGEST else np.asarray(vector * (LONGEST / length), np.float32)


def boosted(probabilities: Floats, boosts: Floats) -> Floats:
    """σ(logit(p) + b), shape (n,), with b within ±`MOST_BOOST`.

    A probability of 0 stays: no index returned that tool. A tool that the request names stays before all others.
    """
    inside = np.clip(probabilities.astype(np.float64), NEVER_CERTAIN, 1 - NEVER_CERTAIN)
    odds = np.log(inside) - np.log1p(-inside) + np.clip(boosts, -MOST_BOOST, MOST_BOOST)
    taught = np.minimum(1 / (1 + np.exp(-odds)), UNNAMED)
    fixed = (probabilities <= 0) | (probabilities >= NAMED)
    return np.where(fixed, probabilities, taught).astype(np.float32)


def _hash(*parts: str) -> str:
    return hashlib.sha256("\0".join(parts).encode("utf-8", "surrogatepass")).hexdigest()
