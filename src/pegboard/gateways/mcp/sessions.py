"""What each conversation has accumulated, kept in a store so that a restarted gateway goes on (seed 002; DESIGN §2.3).

A change is a function from a session to the next one: it is applied to the stored session, and applied again where
somebody else was faster.
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
from pegboard.seams import Sessions
from pegboard.stores.sessions import key_of

LOGGER = logging.getLogger(__name__)

MOST_NOTICES = 2
"""Notices without a listing after which a client is taken not to honour them."""
MOST_TRIES = 10
MOST_UNSAVED = 100
"""Changes of one session that are made anew where another process changed it while the store was down."""
LIVE = 10_000

Change = Callable[[Session], Session]


def enable(tools: Iterable[ToolId], *, cap: int) -> Change:
    """Add tools; beyond ``cap`` the least recently used leave."""
    added = tuple(dict.fromkeys(tools))

    def change(session: Session) -> Session:
        kept = tuple(tool for tool in session.enabled if tool not in added)
        every = (*kept, *reversed(added))
        return replace(session, enabled=every[max(0, len(every) - cap) :])

    return change


def use(tool: ToolId) -> Change:
    """An enabled tool was called: it is the most recently used one."""

    def change(session: Session) -> Session:
        if tool not in session.enabled or session.enabled[-1] == tool:
            return session
        return replace(session, enabled=(*(each for each in session.enabled if each != tool), tool))

    return change


def answered(name: str) -> Change:
    """A tool of this own name gave a result: preconditions may ask for it (seed 000 §4.2)."""
    return lambda session: session if name in session.answered else replace(session, answered=session.answered | {name})


def noticed(session: Session) -> Session:
    """The client was told that its list changed."""
    return replace(session, notices=session.notices + 1)


def listed(session: Session) -> Session:
    """The client listed its tools: it does honour what it is told."""
    return replace(session, notices=0) if session.notices else session


def introduced(client: JsonObject) -> Change:
    return lambda session: session if session.client == client else replace(session, client=client)


def moved(to: str, since: str | None) -> Change:
    """The session is with the process ``to`` from now on, unless it went elsewhere since it was with ``since``."""
    return lambda session: replace(session, replica=to) if session.replica == since else session


def is_demoted(session: Session) -> bool:
    """Observed behaviour beats the table: told, and told again, and never listed (DESIGN §2.3)."""
    return session.notices >= MOST_NOTICES


class SessionBook:
    """The sessions of one endpoint. One that is in use is in memory; each change goes to the store.

    A store that fails is passed over: the conversation goes on without it, and what could not be stored is kept for
    when it is back. Of a store on the network that is said by the store itself, of a file here, once.
    """

    def __init__(self, store: Sessions, endpoint: str = "") -> None:
        self._store = store
        self._endpoint = endpoint
        self._live: OrderedDict[str, Session] = OrderedDict()
        self._unsaved: dict[str, tuple[Change, ...]] = {}
        self._locks: dict[str, asyncio.Lock] = {}
        self._failed = False

    async def get(self, session: str | None) -> Session:
        """The session as it is now; a new one where none is known."""
        if session is None:
            return Session()
        key = self._key(session)
        if key not in self._live:
            stored = await self._load(key)
            if key not in self._live:  # else somebody was faster, and what was read may be old
                self._keep(stored or Session(id=key))
        return self._live[key]

    async def find(self, session: str) -> Session | None:
        """The session, if it is known here or to the store."""
        key = self._key(session)
        return self._live.get(key) or await self._load(key)

    async def latest(self, session: str) -> Session | None:
        """The session as the store has it, with what it could not take before: another process may have changed it.

        Raises StoreError where the store does not answer and the session is not known here.
        """
        key = self._key(session)
        try:
            stored = await self._store.load(key)
        except PegboardError as error:
            if key in self._live:
                return self._live[key]
            raise StoreError(error.message, remedy=error.remedy) from error
        if key in self._unsaved and key in self._live:
            await self._save(key)  # it answers again: who asks next may ask another process
            return self._live.get(key)
        if stored is None:
            self._live.pop(key, None)  # ended elsewhere
            return None
        live = self._live.get(key)
        return live if live and live.version >= stored.version else self._keep(self._with_unsaved(key, stored))

    async def update(self, session: str | None, change: Change) -> Session:
        """The session after the change, which is stored."""
        if session is None:
            return change(Session())
        key = self._key(session)
        before = self._live.get(key)
        if before is not None and change(before) == before:
            return before
        async with self._locks.setdefault(key, asyncio.Lock()):
            return self._keep(await self._stored(key, await self.get(session), change))

    def touch(self, session: str | None, change: Change) -> None:
        """A change not worth a write of its own: it is stored with the next one."""
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
            self._say(error)

    async def save_unsaved(self) -> None:
        """Store what could not be stored before."""
        for key in list(self._unsaved):
            await self._save(key)
            if key in self._unsaved:
                return  # the store is still not there

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
                self._say(error)
                break
            else:
                self._unsaved.pop(key, None)
                return saved
        self._unsaved[key] = (*unsaved, change)[-MOST_UNSAVED:]
        return changed

    def _with_unsaved(self, key: str, session: Session) -> Session:
        return reduce(lambda known, change: change(known), self._unsaved.get(key, ()), session)

    def _lost(self, key: str) -> Session:
        """What the store does not have any more: as it is in memory, unless it was forgotten on purpose."""
        return replace(self._live.get(key) or Session(id=key), version=0)

    async def _load(self, key: str) -> Session | None:
        try:
            return await self._store.load(key)
        except PegboardError as error:
            self._say(error)
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
        return key_of(session, self._endpoint)

    def _say(self, error: PegboardError) -> None:
        if isinstance(error, StoreError):
            return
        if not self._failed:
            LOGGER.warning("Sessions will not outlive this process: %s", error)
        self._failed = True


def _same(session: Session) -> Session:
    return session
