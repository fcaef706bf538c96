"""What every database needs: named migrations, a single connection attempt at a time, values in batches."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Generic, TypeVar

from pegboard.errors import ConfigError

BATCH = 500
"""Values per statement, script or command: few enough that other clients do not wait."""
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Migration:
    """A named step that the store records once applied. A released migration never changes; add another one instead."""

    name: str
    statements: tuple[str, ...] = ()


class SingleFlight(Generic[T]):
    """Callers that arrive during an attempt share it: an unresponsive server would make them wait in turn otherwise."""

    def __init__(self, attempt: Callable[[], Awaitable[T]]) -> None:
        self._attempt = attempt
        self._running: asyncio.Task[T] | None = None

    async def __call__(self) -> T:
        """What the attempt returns or raises. The attempt continues if one of its callers is cancelled."""
        if self._running is None or self._running.done():
            self._running = asyncio.create_task(self._tried())
            self._running.add_done_callback(_heard)
        return await asyncio.shield(self._running)

    async def _tried(self) -> T:
        return await self._attempt()


def outstanding(known: Sequence[Migration], applied: Collection[str], store: str) -> list[Migration]:
    """The migrations not yet applied to ``store``, in order. Raises ConfigError if a newer version has changed it.

    >>> [step.name for step in outstanding([Migration("a"), Migration("b")], {"a"}, "The file 'x'")]
    ['b']
    """
    unknown = sorted(set(applied) - {step.name for step in known})
    if unknown:
        raise ConfigError(
            f"{store} was changed by a newer version of Pegboard ({', '.join(map(repr, unknown))}).",
            remedy="Upgrade Pegboard here, or give this version its own store.",
        )
    return [step for step in known if step.name not in applied]


def _heard(task: asyncio.Task[T]) -> None:
    """Retrieve the exception, so that asyncio does not warn about it if every caller has gone."""
    if not task.cancelled():
        task.exception()


def batches(values: Iterable[T], size: int = BATCH) -> Iterator[list[T]]:
    """The values in order, in batches; the last one may be shorter.

    >>> list(batches("abc", 2))
    [['a', 'b'], ['c']]
    """
    left = iter(values)
    while some := list(islice(left, size)):
        yield some
