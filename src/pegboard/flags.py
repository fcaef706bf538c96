"""Events of which each user has many, and for which hardly ever anybody waits."""

from __future__ import annotations

import asyncio
from typing import Any


class Flag(asyncio.Event):
    """An `asyncio.Event` that takes a tenth of the memory while nobody waits: the queue of an Event takes 760 bytes.

    >>> flag = Flag()
    >>> flag.set()
    >>> flag.is_set()
    True
    """

    _waiters: Any

    def __init__(self) -> None:
        super().__init__()
        self._waiters = []
