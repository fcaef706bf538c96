"""Leaves a store alone for a moment after it failed."""

from __future__ import annotations

from pegboard import breaker
from pegboard.errors import StoreError
from pegboard.seams import Clock

REST = 1.0
MEANWHILE = (
    "sessions, counts, pins and what was spent are as this process knows them, and calls under a spend limit are "
    "refused"
)
"""What a store of state leaves behind that does not answer."""


class Breaker(breaker.Breaker[StoreError]):
    """That of a store."""

    def __init__(self, clock: Clock, *, rest: float = REST, meanwhile: str = MEANWHILE) -> None:
        super().__init__(clock, StoreError, name="The store", rest=rest, meanwhile=meanwhile)
