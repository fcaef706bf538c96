"""Every request of a session goes to the process that has it, whichever of those that serve together it came to.

A session is with one process at a time: there are its streams, the requests it has to answer, and the servers it
works with. Its record in the store says which. Where that process has ended, the one that was asked takes the session
over, and goes on with it as after a restart (`revival`).
"""

from __future__ import annotations

import logging
from collections import OrderedDict
from collections.abc import Awaitable, Callable
from typing import Protocol

from starlette.responses import JSONResponse
from starlette.types import Message, Receive, Scope, Send

from pegboard.errors import PegboardError, StoreError
from pegboard.gateways.mcp import sessions
from pegboard.gateways.mcp.access import HOLDER_KEY
from pegboard.gateways.mcp.connection import NAMED_PREFIX, SESSION_HEADER, named_session
from pegboard.gateways.mcp.forwarding import FORWARDED, Forwarder, Outcome
from pegboard.gateways.mcp.gateway import Gateway
from pegboard.gateways.mcp.messages import Replay, header
from pegboard.gateways.mcp.peers import Peers
from pegboard.gateways.mcp.revival import SESSION
from pegboard.gateways.mcp.sessions import LIVE
from pegboard.model import Replica

LOGGER = logging.getLogger(__name__)

MOST_MOVES = 4
"""Times that a request is brought to another process before it is refused."""
NAMED = SESSION_HEADER.encode()
MISDIRECTED = 421
UNAVAILABLE = 503


class Local(Protocol):
    """The transport of this process."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None: ...

    async def release(self, session: str, scope: Scope) -> None:
        """End what is left of a session that is elsewhere now."""
        ...


class Affinity:
    """The transport of one endpoint, in company. An ASGI application."""

    def __init__(self, local: Local, gateway: Gateway, peers: Peers, forwarder: Forwarder) -> None:
        self._local = local
        self._gateway = gateway
        self._peers = peers
        self._forwarder = forwarder
        self._here: OrderedDict[str, None] = OrderedDict()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        session = _session(scope)
        if session is None:
            await self._local(scope, receive, self._claiming(send))
        elif bringer := header(scope["headers"], FORWARDED):
            await self._peers.find(bringer)  # one that just began: known before the store may go away
            await self._brought(session, scope, receive, send)
        else:
            await self._bring(session, scope, Replay(receive), send)

    async def _bring(self, session: str, scope: Scope, replay: Replay, send: Send) -> None:
        for _ in range(MOST_MOVES):
            owner = await self._owner(session)
            if owner is None:
                await self._ask_around(scope, replay, send)
                return
            if owner.id == self._peers.me.id:
                await self._serve(session, scope, replay.again(), send)
                return
            if session in self._here:
                del self._here[session]
                await self._local.release(session, scope)
            outcome = await self._forwarder.forward(owner, scope, replay, send)
            if outcome is Outcome.ANSWERED:
                return
            if outcome is Outcome.GONE:
                self._peers.lost(owner)
        error = PegboardError("This session is on its way from one process to another.", remedy="Ask again.")
        await JSONResponse(error.payload(), UNAVAILABLE)(scope, replay.again(), send)

    async def _brought(self, session: str, scope: Scope, receive: Receive, send: Send) -> None:
        """Another process brought it here; where it does not belong here after all, that one looks again."""
        owner = await self._owner(session)
        if owner is not None and owner.id != self._peers.me.id:
            await JSONResponse({"error": "misdirected"}, MISDIRECTED)(scope, receive, send)
        else:
            await self._serve(session, scope, receive, send)

    async def _serve(self, session: str, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["method"] == "DELETE":
            self._here.pop(session, None)
        else:
            self._note_here(session)
        await self._local(scope, receive, send)

    def _note_here(self, session: str) -> None:
        """Where it goes elsewhere, what the transport has of it ends. Of clients that just left it is forgotten."""
        self._here[session] = None
        self._here.move_to_end(session)
        while len(self._here) > LIVE:
            self._here.popitem(last=False)

    async def _owner(self, session: str) -> Replica | None:
        """Where the session is: where it was, if that process lives, else here; None where only the others can say."""
        me = self._peers.me
        try:
            known = await self._gateway.book.latest(session)
        except StoreError:
            self._peers.store_failed()
            return None
        if known is None and self._peers.unsettled:
            return None
        if known is None and not session.startswith(NAMED_PREFIX):
            return me  # nobody has it: the transport says so
        before = known.replica if known else None
        owner = await self._peers.find(before) if before else None
        if owner is None:
            now = await self._gateway.book.update(session, sessions.moved(me.id, since=before))
            owner = (await self._peers.find(now.replica) if now.replica else None) or me
            if before is not None and owner.id == me.id:
                LOGGER.info("A session of a process that has ended goes on here")
        return owner

    async def _ask_around(self, scope: Scope, replay: Replay, send: Send) -> None:
        """Nothing is known of the session here, and the store cannot be asked: whoever has it will answer."""
        for other in self._peers.others:
            if await self._forwarder.forward(other, scope, replay, send, unless_unknown=True) is Outcome.ANSWERED:
                return
        await self._local(scope, replay.again(), send)

    def _claiming(self, send: Send) -> Callable[[Message], Awaitable[None]]:
        """A session that begins here is known to be here before its client is told its name."""

        async def claimed(message: Message) -> None:
            if message["type"] == "http.response.start" and (begun := header(message.get("headers", ()), SESSION)):
                self._note_here(begun)
                await self._gateway.book.update(begun, sessions.moved(self._peers.me.id, since=None))
            await send(message)

        return claimed


def _session(scope: Scope) -> str | None:
    """The session of a request, as the gateway calls it."""
    legacy = header(scope["headers"], SESSION)
    if legacy is not None:
        return legacy
    named = header(scope["headers"], NAMED)
    return named_session(named, scope.get(HOLDER_KEY)) if named else None
