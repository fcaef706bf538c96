"""The other processes on the same store, as far as this one knows."""

from __future__ import annotations

import asyncio
import hashlib
import logging
import socket
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager

from pegboard.errors import PegboardError, StoreError
from pegboard.gateways.lasting_work import kept_up
from pegboard.model import Replica
from pegboard.protocols import Clock, Replicas

LOGGER = logging.getLogger(__name__)

BEAT_SECONDS = 2.0
SHUNNED_SECONDS = 10.0
"""Seconds for which a process that did not answer counts as gone, whatever the store says. By then its entry has
expired, or the process has renewed it."""
UNSETTLED_SECONDS = 10.0
"""Seconds after a failure of the store during which missing entries prove nothing: sessions and processes may not have
been stored."""
MARK_LENGTH = 16
ANY = frozenset({"", "0.0.0.0", "::"})  # noqa: S104


class Peers:
    """Registers this process in the store and reads the others. If the store is down, the last known ones stay."""

    def __init__(self, store: Replicas, me: Replica, clock: Clock) -> None:
        self.me = me
        self._store = store
        self._clock = clock
        self._alive: Mapping[str, Replica] = {me.id: me}
        self._shunned: dict[str, float] = {}
        self._unreached: dict[str, float] = {}
        self._unsettled_until = 0.0
        self.store_answers = True
        self._changed = asyncio.Event()

    @asynccontextmanager
    async def known(self) -> AsyncIterator[Peers]:
        """Within it, the other processes know this one."""
        await self.beat()
        beating = asyncio.create_task(kept_up(self._run, self._clock, "The other processes could not be read"))
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
            LOGGER.warning("The other processes cannot be read: %s", error)
            return
        if self.unsettled:  # the others have to renew their entries
            alive = dict(self._alive) | alive
        self.store_answers = True
        await self._succeed(alive)
        now = self._clock.monotonic()
        self._shunned = {key: until for key, until in self._shunned.items() if until > now}
        self._unreached.clear()
        self._set({key: each for key, each in alive.items() if key not in self._shunned})

    async def _succeed(self, alive: dict[str, Replica]) -> None:
        """Remove a crashed process that had this address and could not unregister."""
        before = [each for each in alive.values() if each.url == self.me.url and each.id != self.me.id]
        for each in before:
            LOGGER.info("This process replaces one that ended without unregistering")
            del alive[each.id]
            self._shunned[each.id] = self._clock.monotonic() + SHUNNED_SECONDS
            try:
                await self._store.leave(each)
            except PegboardError as error:
                LOGGER.debug("This process could not unregister; its entry will expire: %s", error)

    async def leave(self) -> None:
        """Unregister, so that other processes take over this one's sessions."""
        try:
            await self._store.leave(self.me)
        except PegboardError as error:
            LOGGER.debug("This process could not unregister; its entry will expire: %s", error)

    @property
    def others(self) -> list[Replica]:
        return [each for key, each in self._alive.items() if key != self.me.id]

    @property
    def reachable(self) -> list[Replica]:
        """The others, without those that could not be reached a moment ago: it is waited for them one after another."""
        now = self._clock.monotonic()
        return [each for each in self.others if self._unreached.get(each.id, now) <= now]

    async def find(self, key: str) -> Replica | None:
        """The live process with this id, which may be this one. An id that is unknown here may be of a new process."""
        if key not in self._alive and key not in self._shunned:
            await self.beat()
        return self._alive.get(key)

    def knows(self, key: str) -> bool:
        """Whether this is the id of another process that lives, as far as is known here; the store is not asked."""
        return key in self._alive and key != self.me.id

    def marked(self, mark: str) -> Replica | None:
        """The other process with this mark."""
        return next((each for each in self.others if mark_of(each) == mark), None)

    def store_failed(self) -> None:
        self.store_answers = False
        self._unsettled_until = self._clock.monotonic() + UNSETTLED_SECONDS

    @property
    def unsettled(self) -> bool:
        """Whether other processes may know entries that the store lacks."""
        return self._clock.monotonic() < self._unsettled_until

    def lost(self, replica: Replica) -> None:
        """The process does not answer: treat it as gone for a while."""
        self._shunned[replica.id] = self._clock.monotonic() + SHUNNED_SECONDS
        self._set({key: each for key, each in self._alive.items() if key != replica.id})

    def unreached(self, replica: Replica) -> None:
        """The process cannot be reached from here. That may be due to this one: it is not treated as gone."""
        self._unreached[replica.id] = self._clock.monotonic() + SHUNNED_SECONDS

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


def mark_of(replica: Replica) -> str:
    """What strangers may know of a process: its id is known to processes alone."""
    return hashlib.sha256(f"mark of {replica.id}".encode()).hexdigest()[:MARK_LENGTH]


def address(configured: str | None, host: str, port: int) -> str:
    """The URL at which others reach this process: the configured one, else its host, or the machine's name if it
    listens on all addresses.

    >>> address(None, "10.0.0.2", 7332)
    'http://10.0.0.2:7332'
    """
    if configured is not None:
        return configured.rstrip("/")
    name = socket.gethostname() if host in ANY else host
    return f"http://[{name}]:{port}" if ":" in name else f"http://{name}:{port}"
