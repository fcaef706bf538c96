"""Circuit breakers: after a failure, a service is not called for a while, so that callers do not wait for it.

`Circuit` decides when; encoders, stores and servers all use it. `Breaker` wraps a circuit around calls.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Generic, TypeVar

from pegboard.errors import PegboardError
from pegboard.protocols import Clock

LOGGER = logging.getLogger(__name__)

E = TypeVar("E", bound=PegboardError)


@dataclass(frozen=True, slots=True, kw_only=True)
class RestPolicy:
    """When a service rests, that is, is not called, and for how long.

    It rests for ``rest`` seconds after ``failures`` failures in a row (0: never). Each further failure doubles the
    rest, up to ``longest`` seconds. Without ``longest``, every rest is as long as the first.
    """

    rest: float
    failures: int = 1
    longest: float | None = None

    def after(self, rest: float) -> float:
        """Length in seconds of the rest that follows a rest of ``rest`` seconds.

        >>> RestPolicy(rest=30, longest=100).after(60), RestPolicy(rest=30).after(30)
        (100, 30)
        """
        return min(2 * rest, self.rest if self.longest is None else self.longest)


class Circuit:
    """The state of one service: closed while it works, open while it rests, then half open until a call decides.

    A failed call is ignored if it began before the rest was over, or before the service came back; one that worked, if
    it began before the service failed: its answer may have been under way then.
    """

    def __init__(self, clock: Clock, policy: RestPolicy) -> None:
        self.policy = policy
        self.failures = 0
        """Consecutive failures."""
        self.rest = 0.0
        """Length of the current or the last rest, in seconds."""
        self._clock = clock
        self._opened: float | None = None
        self._telling = -math.inf
        """Failures count only for calls that began at or after this moment (monotonic seconds)."""

    @property
    def closed(self) -> bool:
        return self._opened is None

    @property
    def resting(self) -> bool:
        return not self.closed and self._clock.monotonic() < self._telling

    def failed(self, began: float) -> bool:
        """Record the failure of a call that ``began`` at a moment (monotonic seconds). True if it starts a rest."""
        if began < self._telling or not self.policy.failures:
            return False
        now = self._clock.monotonic()
        self.failures += 1
        if self._opened is not None:
            self.rest = self.policy.after(self.rest)
        elif self.failures < self.policy.failures:
            return False
        else:
            self._opened, self.rest = now, self.policy.rest
        self._telling = now + self.rest
        return True

    def worked(self, began: float) -> float | None:
        """Record any answer to a call that ``began`` at a moment (monotonic seconds). If it closes the circuit, returns
        the seconds for which the circuit was not closed."""
        if self._opened is not None and began < self._opened:
            return None
        self.failures = 0
        if self._opened is None:
            return None
        now = self._clock.monotonic()
        seconds, self._opened, self._telling = now - self._opened, None, now
        return seconds


class Breaker(Generic[E]):
    """Wraps calls of a service. After a ``failure`` it rests for ``rest`` seconds; then one call at a time is let
    through until one succeeds.

    Logs once that the service is down and what happens ``meanwhile``, and once that it is back.
    """

    def __init__(self, clock: Clock, failure: type[E], *, name: str, rest: float, meanwhile: str) -> None:
        self._clock = clock
        self._circuit = Circuit(clock, RestPolicy(rest=rest))
        self._failure_kind = failure
        self._name = name
        self._meanwhile = meanwhile
        self._failure: E | None = None
        self._trying = False

    @contextmanager
    def call(self) -> Iterator[None]:
        """Wrap each use of the service. Raises the last failure at once while the service rests."""
        self.check()
        mine = not self._circuit.closed
        self._trying = self._trying or mine
        began = self._clock.monotonic()
        try:
            yield
        except self._failure_kind as error:
            self._failed(error, began)
            raise
        except Exception:
            self._worked(began)  # another kind of error: the service did answer
            raise
        else:
            self._worked(began)
        finally:
            if mine:
                self._trying = False

    def check(self) -> None:
        left_alone = self._circuit.resting or (self._trying and not self._circuit.closed)
        if self._failure is not None and left_alone:
            raise self._failure_kind(self._failure.message, remedy=self._failure.remedy)

    def _failed(self, error: E, began: float) -> None:
        worked_before = self._circuit.closed
        if self._circuit.failed(began):
            self._failure = error
            if worked_before:
                LOGGER.warning("%s Until it answers again, %s.", error, self._meanwhile)

    def _worked(self, began: float) -> None:
        seconds = self._circuit.worked(began)
        if seconds is not None:
            LOGGER.warning("%s answers again, after %.0f s.", self._name, seconds)
