"""Writes on a background thread: callers neither wait for a write nor fail with it."""

from __future__ import annotations

import logging
import threading
from collections import deque
from collections.abc import Callable, Sequence
from typing import Generic, TypeVar

LOGGER = logging.getLogger(__name__)

CLOSING_SECONDS = 10.0
"""Seconds that closing waits for pending items to be written."""

T = TypeVar("T")


class WriteBehind(Generic[T]):
    """Passes items to ``write`` in order, in batches of what has accumulated. The thread starts with the first item.

    Items that would exceed ``most``, the sum of the sizes given to `put`, are dropped, and so are items that ``write``
    fails on. A warning that names ``what`` is logged once until a write succeeds again.
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
        """Queue an item. Safe from any thread."""
        with self._changed:
            full = self._held > 0 and self._held + size > self._most
            if self._closed or full:
                self._warn("items arrive faster than they can be written" if full else "it is closed")
                return
            self._waiting.append((item, size))
            self._held += size
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name=f"pegboard {self._what}", daemon=True)
                self._thread.start()
            self._changed.notify()

    def close(self) -> None:
        """Return once everything is written, or after `CLOSING_SECONDS`."""
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
            except Exception as error:  # noqa: BLE001  # no caller waits for the result
                self._warn(str(error))
            with self._changed:
                self._held -= sum(size for _, size in batch)

    def _next(self) -> list[tuple[T, int]]:
        """The queued items; empty only once it is closed."""
        with self._changed:
            self._changed.wait_for(lambda: self._waiting or self._closed)
            batch = list(self._waiting)
            self._waiting.clear()
            return batch

    def _warn(self, why: str) -> None:
        if not self._failing:
            self._failing = True
            LOGGER.warning("Items of %s were dropped: %s", self._what, why)
