"""Routes every request of a session to the process that owns it.

A session belongs to one process at a time, which has its streams, its pending requests, and the servers it works with.
Its record in the store names that process. If the process has ended, the one that got the request takes the session
over, as after a restart (`session_recovery`).

A request without a session is served where it arrives, unless it answers questions that another process has asked, or
begins a session while this process alone cannot reach the store.
"""

from __future__ import annotations

import json
import logging
from collections import OrderedDict
from collections.abc import Awaitable, Callable
from typing import Any, Protocol

from mcp_types.version import MODERN_PROTOCOL_VERSIONS
from starlette.responses import JSONResponse
from starlette.types import Message, Receive, Scope, Send

from pegboard.errors import PegboardError, StoreError
from pegboard.gateways.mcp.cluster.forwarder import FORWARDED, Forwarder, ForwardOutcome
from pegboard.gateways.mcp.cluster.http_messages import ReplayableBody, header
from pegboard.gateways.mcp.cluster.peers import Peers
from pegboard.gateways.mcp.cluster.session_recovery import SESSION, VERSION
from pegboard.gateways.mcp.gateway import session_changes
from pegboard.gateways.mcp.gateway.gateway import Gateway
from pegboard.gateways.mcp.gateway.session_changes import LIVE
from pegboard.gateways.mcp.transport.auth import HOLDER_KEY
from pegboard.gateways.mcp.transport.client_connection import NAMED_PREFIX, SESSION_HEADER, named_session
from pegboard.gateways.mcp.transport.client_input import process_of
from pegboard.gateways.mcp.transport.signed_ids import Signing
from pegboard.model import Replica

LOGGER = logging.getLogger(__name__)

MOST_MOVES = 4
"""Times that a request is forwarded before it is refused."""
NAMED = SESSION_HEADER.encode()
STATE = b'"requestState"'
BEGIN_SECONDS = 5.0
"""Seconds that another process has to begin its answer to a request that begins a session. It waits for no tool, and a
process that hangs while the store is down is not seen to have ended."""
MISDIRECTED = 421
UNAVAILABLE = 503


class Local(Protocol):
    """The transport of this process."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None: ...

    async def release(self, session: str, scope: Scope) -> None:
        """End what is left of a session that another process owns now."""
        ...


class SessionAffinity:
    """The ASGI application of one endpoint that shares its sessions with other processes."""

    def __init__(self, local: Local, gateway: Gateway, peers: Peers, forwarder: Forwarder, signing: Signing) -> None:
        self._local = local
        self._gateway = gateway
        self._peers = peers
        self._forwarder = forwarder
        self._signing = signing
        gateway.pending_inputs.process = peers.me.id
        self._here: OrderedDict[str, None] = OrderedDict()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        session = _session(scope)
        if session is None:
            await self._serve_alone(scope, receive, send)
        elif bringer := header(scope["headers"], FORWARDED):
            await self._peers.find(bringer)  # a new process: learn of it before the store may fail
            await self._brought(session, scope, receive, send)
        else:
            await self._bring(session, scope, ReplayableBody(receive), send)

    async def _serve_alone(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve a request without a session; if it answers questions, where they were asked. Only requests of revision
        2026-07-28 do, and only others begin sessions. None is forwarded twice."""
        bringer = header(scope["headers"], FORWARDED)
        if header(scope["headers"], VERSION) not in MODERN_PROTOCOL_VERSIONS:
            if not self._peers.store_answers:
                await self._begin_elsewhere(bringer, scope, ReplayableBody(receive), send)
                return
        elif not bringer:
            replay = ReplayableBody(receive)
            asking = await self._asking(await replay.body())
            if asking is not None:
                if await self._forwarder.forward(asking, scope, replay, send) is ForwardOutcome.ANSWERED:
                    return
                self._peers.lost(asking)
            receive = replay.again()
        await self._local(scope, receive, self._claiming(send))

    async def _begin_elsewhere(self, bringer: str | None, scope: Scope, replay: ReplayableBody, send: Send) -> None:
        """Begin a session in a process that can store it: one that begins here is known to no process that still reads
        the store. If none can, or none has this toolset yet, it begins here."""
        if bringer:
            await _misdirected(scope, replay.again(), send)
            return
        for other in self._peers.reachable:
            outcome = await self._forwarder.forward(
                other, scope, replay, send, unless_unknown=True, seconds=BEGIN_SECONDS
            )
            if outcome is ForwardOutcome.ANSWERED:
                return
            if outcome is ForwardOutcome.GONE:
                self._peers.unreached(other)
        await self._local(scope, replay.again(), self._claiming(send))

    async def _asking(self, body: bytes) -> Replica | None:
        """The other process that has asked what a request answers, if that lives."""
        try:
            request: Any = json.loads(body) if STATE in body else {}
            asking = process_of(self._signing.said_by(request["params"]["requestState"]))
        except (ValueError, KeyError, TypeError, RecursionError):
            return None
        found = await self._peers.find(asking) if asking else None
        return None if found is None or found.id == self._peers.me.id else found

    async def _bring(self, session: str, scope: Scope, replay: ReplayableBody, send: Send) -> None:
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
            if outcome is ForwardOutcome.ANSWERED:
                return
            if outcome is ForwardOutcome.GONE:
                self._peers.lost(owner)
        error = PegboardError("This session is moving from one process to another.", remedy="Repeat the request.")
        await JSONResponse(error.payload(), UNAVAILABLE)(scope, replay.again(), send)

    async def _brought(self, session: str, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve a request that another process forwarded. If the session is owned elsewhere, that process looks it up
        again."""
        owner = await self._owner(session)
        if owner is not None and owner.id != self._peers.me.id:
            await _misdirected(scope, receive, send)
        else:
            await self._serve(session, scope, receive, send)

    async def _serve(self, session: str, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["method"] == "DELETE":
            self._here.pop(session, None)
        else:
            self._note_here(session)
        await self._local(scope, receive, send)

    def _note_here(self, session: str) -> None:
        """Remember that the session is here: what the transport has of it must be ended when it moves. The oldest are
        forgotten."""
        self._here[session] = None
        self._here.move_to_end(session)
        while len(self._here) > LIVE:
            self._here.popitem(last=False)

    async def _owner(self, session: str) -> Replica | None:
        """The process that owns the session: its recorded process if it lives, else this one. None if only the other
        processes can tell."""
        me = self._peers.me
        try:
            known = await self._gateway.book.latest(session)
        except StoreError:
            self._peers.store_failed()
            return None
        if known is None and self._peers.unsettled:
            return None
        if known is None and not session.startswith(NAMED_PREFIX):
            return me  # nobody has it: the transport answers that
        before = known.replica if known else None
        owner = await self._peers.find(before) if before else None
        if owner is None:
            now = await self._gateway.book.update(session, session_changes.moved(me.id, since=before))
            owner = (await self._peers.find(now.replica) if now.replica else None) or me
            if before is not None and owner.id == me.id:
                LOGGER.info("A session of a process that has ended continues here")
        return owner

    async def _ask_around(self, scope: Scope, replay: ReplayableBody, send: Send) -> None:
        """Ask the other processes: the session is unknown here, and the store cannot be read."""
        for other in self._peers.others:
            if (
                await self._forwarder.forward(other, scope, replay, send, unless_unknown=True)
                is ForwardOutcome.ANSWERED
            ):
                return
        await self._local(scope, replay.again(), send)

    def _claiming(self, send: Send) -> Callable[[Message], Awaitable[None]]:
        """Records that a new session is here before the client learns its id."""

        async def claimed(message: Message) -> None:
            if message["type"] == "http.response.start" and (begun := header(message.get("headers", ()), SESSION)):
                self._note_here(begun)
                await self._gateway.book.update(begun, session_changes.moved(self._peers.me.id, since=None))
            await send(message)

        return claimed


async def _misdirected(scope: Scope, receive: Receive, send: Send) -> None:
    await JSONResponse({"error": "misdirected"}, MISDIRECTED)(scope, receive, send)


def _session(scope: Scope) -> str | None:
    """The gateway's key of a request's session."""
    legacy = header(scope["headers"], SESSION)
    if legacy is not None:
        return legacy
    named = header(scope["headers"], NAMED)
    return named_session(named, scope.get(HOLDER_KEY)) if named else None
