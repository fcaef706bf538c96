"""Writing on a thread of its own: whoever hands something over neither waits for it nor fails with it."""

from __future__ import annotations

import logging
import threading
from collections import deque
from collections.abc import Callable, Sequence
from typing import Generic, TypeVar

LOGGER = logging.getLogger(__name__)

CLOSING_SECONDS = 10.0
"""Time that what is still to be written has at the end."""

T = TypeVar("T")


class Behind(Generic[T]):
    """Hands what it is given to ``write``, in order, as many at a time as have come. The thread begins with the first.

    What comes while ``most`` is held, in the unit of `put`'s sizes, is left out; so is what ``write`` fails on. Both
    are warned about, once until it goes well again. ``what`` names it there.
    """

    def __init__(self, write: Callable[[Sequence[T]], object], *, what: str, most: int) -> None:
        self._write = write
        self._what = what
        self._most = most
        self._held = 0
        self._waiting: deque[tuple[T, int]] = deque()
        self._changed = threading.Condition()
        self._closed = False
        self._failing = False
        self._thread: threading.Thread | None = None

    def put(self, item: T, size: int = 1) -> None:
        """From any thread."""
        with self._changed:
            full = self._held > 0 and self._held + size > self._most
            if self._closed or full:
                self._warn("it comes faster than it can be written" if full else "it is closed")
                return
            self._waiting.append((item, size))
            self._held += size
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name=f"pegboard {self._what}", daemon=True)
                self._thread.start()
            self._changed.notify()

    def close(self) -> None:
        """Once everything is written, or it has taken too long."""
        with self._changed:
            self._closed = True
            self._changed.notify()
        if self._thread is not None:
            self._thread.join(CLOSING_SECONDS)

    def _run(self) -> None:
        while batch := self._next():
            try:
                self._write([item for item, _ in batch])
                self._failing = False
            except Exception as error:  # noqa: BLE001  # nobody who could be told of it is waiting
                self._warn(str(error))
            with self._changed:
                self._held -= sum(size for _, size in batch)

    def _next(self) -> list[tuple[T, int]]:
        """What has come; nothing only when it is closed."""
        with self._changed:
            self._changed.wait_for(lambda: self._waiting or self._closed)
            batch = list(self._waiting)
            self._waiting.clear()
            return batch

    def _warn(self, why: str) -> None:
        if not self._failing:
            self._failing = True
            LOGGER.warning("Something was left out of %s: %s", self._what, why)
