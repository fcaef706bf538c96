"""The state of each conversation, kept in a store so that it survives a restart of the gateway (the lazy-loading PRD).

A change is a function from a session to the next one. It is applied to the stored session, and applied again after a
conflicting write.
"""

from __future__ import annotations

import asyncio
import logging
from collections import OrderedDict
from collections.abc import Callable, Iterable
from dataclasses import replace
from functools import reduce

from pegboard.errors import PegboardError, SessionConflict, StoreError
from pegboard.model import JsonObject, Session, ToolId
from pegboard.protocols import Sessions
from pegboard.stores.sessions import session_key

LOGGER = logging.getLogger(__name__)

MOST_NOTICES = 2
"""Notifications without a listing, after which a client is assumed to ignore them."""
MOST_WATCHED = 1_000
"""Resources of a session that are watched again after a restart; the first ones are forgotten."""
LONGEST_WATCHED = 2_000
"""Characters of an address that is watched again after a restart."""
MOST_TRIES = 10
MOST_UNSAVED = 100
"""Changes of one session that are reapplied if another process changed it while the store was down."""
LIVE = 10_000

Change = Callable[[Session], Session]


def enable(tools: Iterable[ToolId], *, cap: int) -> Change:
    """Add tools; beyond ``cap`` the least recently used are removed."""
    added = tuple(dict.fromkeys(tools))

    def change(session: Session) -> Session:
        kept = tuple(tool for tool in session.enabled if tool not in added)
        every = (*kept, *reversed(added))
        return replace(session, enabled=every[max(0, len(every) - cap) :])

    return change


def offer(tools: Iterable[ToolId], *, cap: int) -> Change:
    """Add tools as the least recently used ones, as far as there is room: none of those that are there is removed."""
    added = tuple(dict.fromkeys(tools))

    def change(session: Session) -> Session:
        new = [tool for tool in added if tool not in session.enabled][: max(0, cap - len(session.enabled))]
        return replace(session, enabled=(*reversed(new), *session.enabled)) if new else session

    return change


def use(tool: ToolId) -> Change:
    """An enabled tool was called: it becomes the most recently used one."""

    def change(session: Session) -> Session:
        if tool not in session.enabled or session.enabled[-1] == tool:
            return session
        return replace(session, enabled=(*(each for each in session.enabled if each != tool), tool))

    return change


def answered(name: str) -> Change:
    """A tool with this upstream name returned a result: preconditions can refer to it (Tool Attention §4.2)."""
    return lambda session: session if name in session.answered else replace(session, answered=session.answered | {name})


def noticed(session: Session) -> Session:
    """The client was notified that its list changed."""
    return replace(session, notices=session.notices + 1)


def listed(session: Session) -> Session:
    """The client listed its tools, so it does honour notifications."""
    return replace(session, notices=0) if session.notices else session


def introduced(client: JsonObject) -> Change:
    return lambda session: session if session.client == client else replace(session, client=client)


def watches(uri: str) -> Change:
    """The client wants to be told of changes of a resource."""

    def change(session: Session) -> Session:
        if uri in session.watched or len(uri) > LONGEST_WATCHED:
            return session
        return replace(session, watched=(*session.watched, uri)[-MOST_WATCHED:])

    return change


def watches_no_more(uri: str) -> Change:
    return lambda session: replace(session, watched=tuple(each for each in session.watched if each != uri))


def logs_at(level: str) -> Change:
    return lambda session: replace(session, level=level)


def moved(to: str, since: str | None) -> Change:
    """The session moves to the process ``to``, unless it has left ``since`` for another one meanwhile."""
    return lambda session: replace(session, replica=to) if session.replica == since else session


def is_demoted(session: Session) -> bool:
    """Whether the client ignored several notifications: observed behaviour overrides the client table."""
    return session.notices >= MOST_NOTICES


class SessionBook:
    """The sessions of one endpoint. Sessions in use are in memory; every change is written to the store.

    If the store fails, conversations continue without it, and unsaved changes are kept until it is back. Failures of a
    network store are logged by the store itself; those of a local file are logged here, once.
    """

    def __init__(self, store: Sessions, endpoint: str = "") -> None:
        self._store = store
        self._endpoint = endpoint
        self._live: OrderedDict[str, Session] = OrderedDict()
        self._unsaved: dict[str, tuple[Change, ...]] = {}
        self._locks: dict[str, asyncio.Lock] = {}
        self._failed = False

    async def get(self, session: str | None) -> Session:
        """The current session; a new one if it is unknown."""
        if session is None:
            return Session()
        key = self._key(session)
        if key not in self._live:
            stored = await self._load(key)
            if key not in self._live:  # otherwise another request was faster, and the session read may be outdated
                self._keep(stored or Session(id=key))
        self._live.move_to_end(key)
        return self._live[key]

    async def find(self, session: str) -> Session | None:
        """The session, if it is known here or in the store."""
        key = self._key(session)
        return self._live.get(key) or await self._load(key)

    async def latest(self, session: str) -> Session | None:
        """The session as stored, with the changes that could not be stored before: another process may have changed it.

        Raises StoreError if the store does not answer and the session is not known here.
        """
        key = self._key(session)
        try:
            stored = await self._store.load(key)
        except PegboardError as error:
            if key in self._live:
                return self._live[key]
            raise StoreError(error.message, remedy=error.remedy) from error
        if key in self._unsaved and key in self._live:
            await self._save(key)  # the store answers again: the next request may go to another process
            return self._live.get(key)
        if stored is None:
            self._live.pop(key, None)  # ended by another process
            return None
        live = self._live.get(key)
        return live if live and live.version >= stored.version else self._keep(self._with_unsaved(key, stored))

    async def update(self, session: str | None, change: Change) -> Session:
        """Apply a change and store it. Returns the new session."""
        if session is None:
            return change(Session())
        key = self._key(session)
        before = self._live.get(key)
        if before is not None and change(before) == before:
            return before
        async with self._locks.setdefault(key, asyncio.Lock()):
            return self._keep(await self._stored(key, await self.get(session), change))

    def touch(self, session: str | None, change: Change) -> None:
        """Apply a change that is stored with the next one: it is not worth its own write."""
        if session is not None and (live := self._live.get(self._key(session))):
            self._keep(change(live))

    async def forget(self, session: str) -> None:
        key = self._key(session)
        self._live.pop(key, None)
        self._locks.pop(key, None)
        self._unsaved.pop(key, None)
        try:
            await self._store.forget(key)
        except PegboardError as error:
            self._log(error)

    async def save_unsaved(self) -> None:
        """Store the changes that could not be stored before."""
        for key in list(self._unsaved):
            await self._save(key)
            if key in self._unsaved:
                return  # the store is still down

    async def _save(self, key: str) -> None:
        async with self._locks.setdefault(key, asyncio.Lock()):
            if key in self._live and key in self._unsaved:
                self._keep(await self._stored(key, self._live[key], _same))

    async def _stored(self, key: str, session: Session, change: Change) -> Session:
        unsaved = self._unsaved.get(key, ())
        changed = change(session)
        for _ in range(MOST_TRIES):
            if changed == session and not unsaved:
                return session
            try:
                saved = await self._store.save(changed)
            except SessionConflict:
                session = self._with_unsaved(key, await self._load(key) or self._lost(key))
                changed = change(session)
            except PegboardError as error:
                self._log(error)
                break
            else:
                self._unsaved.pop(key, None)
                return saved
        self._unsaved[key] = (*unsaved, change)[-MOST_UNSAVED:]
        return changed

    def _with_unsaved(self, key: str, session: Session) -> Session:
        return reduce(lambda known, change: change(known), self._unsaved.get(key, ()), session)

    def _lost(self, key: str) -> Session:
        """A session that is missing in the store: as it is in memory, unless it was deleted on purpose."""
        return replace(self._live.get(key) or Session(id=key), version=0)

    async def _load(self, key: str) -> Session | None:
        try:
            return await self._store.load(key)
        except PegboardError as error:
            self._log(error)
            return None

    def _keep(self, session: Session) -> Session:
        self._live[session.id] = session
        self._live.move_to_end(session.id)
        while len(self._live) > LIVE:
            key, _ = self._live.popitem(last=False)
            self._locks.pop(key, None)
            self._unsaved.pop(key, None)
        return session

    def _key(self, session: str) -> str:
        return session_key(session, self._endpoint)

    def _log(self, error: PegboardError) -> None:
        if isinstance(error, StoreError):
            return
        if not self._failed:
            LOGGER.warning("Sessions will not survive this process: %s", error)
        self._failed = True


def _same(session: Session) -> Session:
    return session
