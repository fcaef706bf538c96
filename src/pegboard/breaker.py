"""Leaves a service alone for a moment after it failed, so that nobody waits for it in vain."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Generic, TypeVar

from pegboard.errors import PegboardError
from pegboard.seams import Clock

LOGGER = logging.getLogger(__name__)

E = TypeVar("E", bound=PegboardError)


class Breaker(Generic[E]):
    """Open for ``rest`` seconds after a ``failure``; then one call at a time tries the service until one succeeds.

    Says once that the service is down and what happens ``meanwhile``, and once that it is back. A call that began
    before it came back and fails after says nothing of the service as it is now.
    """

    def __init__(self, clock: Clock, failure: type[E], *, name: str, rest: float, meanwhile: str) -> None:
        self._clock = clock
        self._failure_kind = failure
        self._name = name
        self._rest = rest
        self._meanwhile = meanwhile
        self._failure: E | None = None
        self._since = 0.0
        self._closed_until = 0.0
        self._trying = False
        self._outages = 0

    @contextmanager
    def call(self) -> Iterator[None]:
        """Around each use of the service. Raises the failure at once where the service is being left alone."""
        self.check()
        mine = self._failure is not None
        self._trying = self._trying or mine
        began = self._outages
        try:
            yield
        except self._failure_kind as error:
            if began == self._outages:
                self._failed(error)
            raise
        except Exception:
            self._worked()  # whatever went wrong, the service did answer
            raise
        else:
            self._worked()
        finally:
            if mine:
                self._trying = False

    def check(self) -> None:
        if self._failure is not None and (self._trying or self._clock.monotonic() < self._closed_until):
            raise self._failure_kind(self._failure.message, remedy=self._failure.remedy)

    def _failed(self, error: E) -> None:
        now = self._clock.monotonic()
        if self._failure is None:
            self._since = now
            LOGGER.warning("%s Until it answers again, %s.", error, self._meanwhile)
        self._failure = error
        self._closed_until = now + self._rest

    def _worked(self) -> None:
        if self._failure is not None:
            LOGGER.warning("%s answers again, after %.0f s.", self._name, self._clock.monotonic() - self._since)
            self._outages += 1
        self._failure = None
