"""Recovers sessions of the handshake era that outlive their process, and streams that broke off.

The SDK answers 404 to session ids that it did not create. If the store knows the id, the client's `initialize` is
repeated on its behalf, and the transport's new session is mapped to the old id.
"""

from __future__ import annotations

import asyncio
import json
import logging
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from functools import partial
from typing import Any

from starlette.types import Message, Receive, Scope, Send

from pegboard.gateways.mcp.cluster.http_messages import Headers, ReplayableBody, header, with_header
from pegboard.gateways.mcp.gateway.gateway import Gateway
from pegboard.gateways.mcp.transport.auth import HOLDER_KEY, Holder
from pegboard.gateways.mcp.transport.client_connection import SESSION_KEY
from pegboard.gateways.mcp.transport.handshake_sessions import ResumableSessions
from pegboard.gateways.mcp.transport.signed_ids import Signing, inner
from pegboard.model import JsonObject

LOGGER = logging.getLogger(__name__)

SESSION = b"mcp-session-id"
VERSION = b"mcp-protocol-version"
ACCEPT = (b"accept", b"application/json, text/event-stream")
JSON = (b"content-type", b"application/json")
NOT_FOUND = 404

App = Callable[[Scope, Receive, Send], Awaitable[None]]

MOST_ENDED = 10_000
"""Sessions remembered as ended by their clients."""


class SessionRecovery:
    """The ASGI application of one gateway's transport while it runs, which also serves sessions that the transport has
    forgotten."""

    def __init__(self, sessions: ResumableSessions, gateway: Gateway, signing: Signing) -> None:
        self._sessions = sessions
        self._transport: App = sessions.handle_request
        self._apart: App = sessions.modern_requests()
        self._gateway = gateway
        self._signing = signing
        self._inner: dict[str, str] = {}
        self._locks: dict[str, asyncio.Lock] = {}
        self._ended: OrderedDict[str, None] = OrderedDict()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        session = header(scope["headers"], SESSION)
        if session is None:
            await self._apart(scope, receive, self._owned(scope, send))
            return
        inner = self._of(session, scope)
        if inner == session and scope["method"] != "DELETE" and self._sessions.serves(session):
            await self._transport(scope, receive, send)
            return
        replay = ReplayableBody(receive)
        if scope["method"] == "DELETE":
            self._inner.pop(session, None)
            self._end(session)
            await self._gateway.end_session(session)
        if await self._pass(scope, replay.receive, send, session, inner, last=session in self._ended):
            if scope["method"] == "DELETE":
                self._inner.pop(session, None)
            return
        async with self._locks.setdefault(session, asyncio.Lock()):
            if self._of(session, scope) == inner:
                await self._recover(session, scope)
        self._locks.pop(session, None)
        inner = self._of(session, scope)
        await self._pass(scope, replay.again(), send, session, inner, last=True)

    def _end(self, session: str) -> None:
        """Mark a session as ended: a request that is still in progress must not restore it."""
        self._ended[session] = None
        while len(self._ended) > MOST_ENDED:
            self._ended.popitem(last=False)

    async def release(self, session: str, scope: Scope) -> None:
        """End the transport's part of a session that another process owns now: the client's next request goes there."""
        self._gateway.announcer.disconnect(session)
        inner = self._of(session, scope)
        self._inner.pop(session, None)
        headers = [(SESSION, inner.encode())]
        headers += [each for each in scope["headers"] if each[0].lower() in (b"host", b"origin", VERSION)]
        ended: Scope = dict(scope) | {"method": "DELETE", "headers": headers}
        await self._transport(ended, _Once(b"").receive, _nobody)

    def _of(self, session: str, scope: Scope) -> str:
        """The transport's current id of a session."""
        return self._inner.get(session) or (inner(session) if scope.get(HOLDER_KEY) else session)

    async def _pass(
        self, scope: Scope, receive: Receive, send: Send, outer: str, inner: str, *, last: bool = False
    ) -> bool:
        """Pass a request on under the session's current id. Returns false, with nothing sent, if the transport does not
        know it."""
        unknown = False

        async def watched(message: Message) -> None:
            nonlocal unknown
            if message["type"] == "http.response.start":
                unknown = message["status"] == NOT_FOUND and not last and scope["method"] != "DELETE"
                message = {
                    **message,
                    "headers": with_header(message.get("headers", ()), SESSION, outer, only_there=True),
                }
            if not unknown:
                await send(message)

        renamed = dict(scope) | {"headers": with_header(scope["headers"], SESSION, inner), SESSION_KEY: outer}
        await self._transport(renamed, receive, watched)
        return not unknown

    async def _recover(self, session: str, scope: Scope) -> None:
        """Start a new session of the transport with the client's stored `initialize`."""
        known = await self._gateway.book.find(session)
        if known is None or known.client is None:
            return
        status, headers, _ = await self._send(scope, None, _request("initialize", known.client))
        inner = header(headers, SESSION)
        if status >= 400 or inner is None:
            LOGGER.warning("A session could not be recovered: the transport answered %d", status)
            return
        version = str(known.client["protocolVersion"])
        await self._send(scope, (inner, version, session), _notification("notifications/initialized"))
        self._inner[session] = inner
        self._gateway.continue_session(session)
        LOGGER.info("A session of an earlier process continues")
        within = (inner, version, session)
        if known.level:
            await self._repeat(scope, within, _request("logging/setLevel", {"level": known.level}))
        if known.watched:  # servers that have to start take longer than the client's request
            await self._sessions.beside(partial(self._watch_again, scope, within, known.watched))

    async def _watch_again(self, scope: Scope, within: tuple[str, str, str], watched: Sequence[str]) -> None:
        """Watch what the client watches still."""
        for uri in watched:
            now = await self._gateway.book.find(within[2])
            if now is not None and uri in now.watched:
                await self._repeat(scope, within, _request("resources/subscribe", {"uri": uri}))

    async def _repeat(self, scope: Scope, within: tuple[str, str, str], wish: bytes) -> None:
        """Repeat what the client asked for until it says otherwise. A server that refuses it now changes nothing."""
        try:
            status, _, answer = await self._send(scope, within, wish)
        except Exception:
            LOGGER.warning("A session was not recovered whole", exc_info=True)
            return
        if status >= 400 or (refusal := _refusal(answer)):
            LOGGER.warning("A session was not recovered whole: %s", refusal if status < 400 else status)

    def _owned(self, scope: Scope, send: Send) -> Send:
        """Signs the id of a new session for its holder, if tokens are required."""
        holder: Holder | None = scope.get(HOLDER_KEY)
        if holder is None:
            return send

        async def owned(message: Message) -> None:
            if message["type"] == "http.response.start" and (begun := header(message["headers"], SESSION)):
                named = self._signing.session(begun, holder)
                message = {**message, "headers": with_header(message["headers"], SESSION, named)}
            await send(message)

        return owned

    async def _send(self, scope: Scope, within: tuple[str, str, str] | None, body: bytes) -> tuple[int, Headers, bytes]:
        """Send the transport one message on the client's behalf, with the client's other headers. The status, headers
        and body of the answer."""
        left_out = {SESSION, VERSION, b"accept", b"content-type", b"content-length", b"last-event-id"}
        headers = [(name, value) for name, value in scope["headers"] if name not in left_out]
        headers += [ACCEPT, JSON, (b"content-length", str(len(body)).encode())]
        own: dict[str, Any] = dict(scope) | {"method": "POST"}
        if within is not None:
            inner, version, outer = within
            headers += [(SESSION, inner.encode()), (VERSION, version.encode())]
            own[SESSION_KEY] = outer
        answer: dict[str, Any] = {}
        said: list[bytes] = []

        async def send(message: Message) -> None:
            if message["type"] == "http.response.start":
                answer.update(message)
            else:
                said.append(message.get("body", b""))

        await self._transport(own | {"headers": headers}, _Once(body).receive, send)
        return answer["status"], list(answer.get("headers", ())), b"".join(said)


class _Once:
    """A generated body; its client never disconnects."""

    def __init__(self, body: bytes) -> None:
        self._body: bytes | None = body

    async def receive(self) -> Message:
        if self._body is None:
            await asyncio.Event().wait()
        body, self._body = self._body, None
        return {"type": "http.request", "body": body, "more_body": False}


async def _nobody(message: Message) -> None:
    """Discards the answer."""


def _request(method: str, params: JsonObject) -> bytes:
    return json.dumps({"jsonrpc": "2.0", "id": "revived", "method": method, "params": params}).encode()


def _refusal(answer: bytes) -> str:
    """The error in an answer, in JSON or on a stream; empty without one."""
    for line in answer.splitlines():
        with suppress(ValueError):
            message = json.loads(line.removeprefix(b"data: "))
            if isinstance(message, dict) and "error" in message:
                return str(message["error"])
    return ""


def _notification(method: str) -> bytes:
    return json.dumps({"jsonrpc": "2.0", "method": method}).encode()
