"""Threads that take turns more often, while one of them has long work to do."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Lock

SECONDS = 1e-4
"""How long a thread keeps the interpreter from one that waits; Python's own value is fifty times that."""


class QuickTurns:
    """While anything is `within`, a search that shares the interpreter with a build waits for less of it.

    >>> turns, before = QuickTurns(), sys.getswitchinterval()
    >>> with turns.within():
    ...     shorter = sys.getswitchinterval()
    >>> shorter < before, sys.getswitchinterval() == before
    (True, True)
    """

    def __init__(self) -> None:
        self._within = 0
        self._before = 0.0
        self._lock = Lock()

    @contextmanager
    def within(self) -> Iterator[None]:
        """Blocks may overlap, on any threads."""
        with self._lock:
            if not self._within:
                self._before = sys.getswitchinterval()
                sys.setswitchinterval(min(SECONDS, self._before))
            self._within += 1
        try:
            yield
        finally:
            with self._lock:
                self._within -= 1
                if not self._within:
                    sys.setswitchinterval(self._before)


TURNS = QuickTurns()
"""The only one, because there is one interval in a process: two that overlap would each put back the other's."""
