"""What comes of calls in one task. The same for all policies: draws belong to the task, the tool and the attempt."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass
from typing import Literal

import numpy as np

from pegboard.model import Outcome
from pegboard_bench.simulate.world import Numbers, World

JITTER = 0.3
"""Calls of a tool take its latency times exp(0.3·z − 0.045), whose mean is 1."""
TIMEOUT = 5.0
"""Seconds until a crash is noticed."""
Failure = Literal["server", "tool"] | None
ATTEMPTS = 4
"""Attempts on a tool that have draws of their own; later ones begin again with the first."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Happened:
    """``seconds`` are those of the tool, ``waited`` those that connecting took besides; ``price`` in USD."""

    outcome: Outcome
    waited: float
    price: float

    @property
    def seconds(self) -> float:
        return self.waited + self.outcome.latency_ms / 1000


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Chance:
    """What is left to chance in a task, shape (attempts, n): uniform numbers, and of the ``pace`` normal ones."""

    crash: Numbers
    success: Numbers
    pace: Numbers

    @classmethod
    def of(cls, world: World, seed: int, moment: int) -> Chance:
        """The draws of a task, the same for all policies."""
        draws, shape = np.random.default_rng([seed, moment]), (ATTEMPTS, len(world.tools))
        return cls(crash=draws.random(shape), success=draws.random(shape), pace=draws.standard_normal(shape))


class Calls:
    """A connection is opened with the first call on a server; one that crashes is gone until the task ends.

    Each call that reaches a server costs its price, whatever comes of it. One that does not is refused after the time
    of a connection.
    """

    def __init__(self, world: World, chance: Chance) -> None:
        self._world = world
        self._chance = chance
        self._attempts = Counter[int]()
        self._open: set[int] = set()
        self._gone: set[int] = set()

    def call(self, place: int) -> Happened:
        """Call the tool at a place of the world."""
        world, server = self._world, int(self._world.server_of[place])
        attempt = self._attempts[place] % ATTEMPTS
        self._attempts[place] += 1
        waited = 0.0 if server in self._open else float(world.connection[server])
        if server in self._gone:
            return self._happened(place, "server", waited=waited)
        self._open.add(server)
        price = float(world.price[place])
        if self._chance.crash[attempt, place] < world.crash[server]:
            self._gone.add(server)
            self._open.discard(server)
            return self._happened(place, "server", waited=waited, seconds=TIMEOUT, price=price)
        seconds = float(world.latency[place]) * math.exp(
            JITTER * self._chance.pace[attempt, place] - JITTER * JITTER / 2
        )
        failure: Failure = None if self._chance.success[attempt, place] < world.success[place] else "tool"
        return self._happened(place, failure, waited=waited, seconds=seconds, price=price)

    def _happened(
        self, place: int, failure: Failure, *, waited: float, seconds: float = 0.0, price: float = 0.0
    ) -> Happened:
        tool, milliseconds = self._world.tools[place], seconds * 1000
        outcome = Outcome(tool=tool, success=failure is None, latency_ms=milliseconds, failure=failure)
        return Happened(outcome=outcome, waited=waited, price=price)
