"""The processes that serve together with this one, as far as this one knows."""

from __future__ import annotations

import asyncio
import logging
import socket
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager

from pegboard.errors import PegboardError, StoreError
from pegboard.model import Replica
from pegboard.seams import Clock, Replicas

LOGGER = logging.getLogger(__name__)

BEAT_SECONDS = 2.0
SHUNNED_SECONDS = 10.0
"""Time for which a process that did not answer is taken to be gone, whatever the store says: by then it has expired
there, or it has said anew that it lives."""
UNSETTLED_SECONDS = 10.0
"""Time after a failure of the store in which what it does not know may be there all the same: a session that could not
be stored, a process that could not say that it lives."""
ANY = frozenset({"", "0.0.0.0", "::"})  # noqa: S104


class Peers:
    """Says to the store that this process lives, and learns who else does. With the store down, the last known stay."""

    def __init__(self, store: Replicas, me: Replica, clock: Clock) -> None:
        self.me = me
        self._store = store
        self._clock = clock
        self._alive: Mapping[str, Replica] = {me.id: me}
        self._shunned: dict[str, float] = {}
        self._unsettled_until = 0.0
        self.store_answers = True
        self._changed = asyncio.Event()

    @asynccontextmanager
    async def known(self) -> AsyncIterator[Peers]:
        """Within it, the others know of this process."""
        await self.beat()
        beating = asyncio.create_task(self._run())
        try:
            yield self
        finally:
            beating.cancel()
            await self.leave()

    async def beat(self) -> None:
        try:
            alive = {each.id: each for each in await self._store.beat(self.me)}
        except StoreError:
            self.store_failed()
            return
        except PegboardError as error:
            LOGGER.warning("It is not known who else serves: %s", error)
            return
        if self.unsettled:  # the others have to say anew that they live
            alive = dict(self._alive) | alive
        self.store_answers = True
        await self._succeed(alive)
        now = self._clock.monotonic()
        self._shunned = {key: until for key, until in self._shunned.items() if until > now}
        self._set({key: each for key, each in alive.items() if key not in self._shunned})

    async def _succeed(self, alive: dict[str, Replica]) -> None:
        """Whoever was reached where this process is has crashed, and not been able to leave."""
        before = [each for each in alive.values() if each.url == self.me.url and each.id != self.me.id]
        for each in before:
            LOGGER.info("This process takes the place of one that has ended without a word")
            del alive[each.id]
            self._shunned[each.id] = self._clock.monotonic() + SHUNNED_SECONDS
            try:
                await self._store.leave(each)
            except PegboardError as error:
                LOGGER.debug("The others will find out: %s", error)

    async def leave(self) -> None:
        """Sessions of this process may go to the others from now on."""
        try:
            await self._store.leave(self.me)
        except PegboardError as error:
            LOGGER.debug("The others will find out: %s", error)

    @property
    def others(self) -> list[Replica]:
        return [each for key, each in self._alive.items() if key != self.me.id]

    async def find(self, key: str) -> Replica | None:
        """The process of this id, this one too, if it lives. One that is not known here may have just begun."""
        if key not in self._alive and key not in self._shunned:
            await self.beat()
        return self._alive.get(key)

    def store_failed(self) -> None:
        self.store_answers = False
        self._unsettled_until = self._clock.monotonic() + UNSETTLED_SECONDS

    @property
    def unsettled(self) -> bool:
        """Whether what the store does not know may all the same be known to one of the others."""
        return self._clock.monotonic() < self._unsettled_until

    def lost(self, replica: Replica) -> None:
        """It does not answer: for a while, it is not there."""
        self._shunned[replica.id] = self._clock.monotonic() + SHUNNED_SECONDS
        self._set({key: each for key, each in self._alive.items() if key != replica.id})

    async def until_gone(self, replica: Replica) -> None:
        while replica.id in self._alive:
            await self._changed.wait()

    def _set(self, alive: Mapping[str, Replica]) -> None:
        before, self._alive = self._alive, {self.me.id: self.me} | dict(alive)
        if before.keys() != self._alive.keys():
            changed, self._changed = self._changed, asyncio.Event()
            changed.set()

    async def _run(self) -> None:
        while True:
            await asyncio.sleep(BEAT_SECONDS)
            await self.beat()


def address(configured: str | None, host: str, port: int) -> str:
    """Where others reach this process: as configured, else where it listens, by the machine's name if everywhere.

    >>> address(None, "10.0.0.2", 7332)
    'http://10.0.0.2:7332'
    """
    if configured is not None:
        return configured.rstrip("/")
    name = socket.gethostname() if host in ANY else host
    return f"http://[{name}]:{port}" if ":" in name else f"http://{name}:{port}"
