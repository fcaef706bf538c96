"""Sessions of the handshake era that outlive their process.

The SDK answers 404 to a session id it did not make itself. Where the store knows the id, the client's own
`initialize` is said again on its behalf: the transport then has a new session, which goes by the old id outside.
"""

from __future__ import annotations

import asyncio
import json
import logging
from collections import OrderedDict
from collections.abc import Awaitable, Callable
from typing import Any

from starlette.types import Message, Receive, Scope, Send

from pegboard.gateways.mcp.access import HOLDER_KEY, Holder
from pegboard.gateways.mcp.connection import SESSION_KEY
from pegboard.gateways.mcp.gateway import Gateway
from pegboard.gateways.mcp.messages import Headers, Replay, header, with_header
from pegboard.gateways.mcp.signing import Signing, inner
from pegboard.model import JsonObject

LOGGER = logging.getLogger(__name__)

SESSION = b"mcp-session-id"
VERSION = b"mcp-protocol-version"
ACCEPT = (b"accept", b"application/json, text/event-stream")
JSON = (b"content-type", b"application/json")
NOT_FOUND = 404

App = Callable[[Scope, Receive, Send], Awaitable[None]]

MOST_ENDED = 10_000
"""Sessions of which it is known that their clients ended them."""


class Revival:
    """The transport of one gateway, with the sessions it forgot. An ASGI application."""

    def __init__(self, transport: App, gateway: Gateway, signing: Signing) -> None:
        self._transport = transport
        self._gateway = gateway
        self._signing = signing
        self._inner: dict[str, str] = {}
        self._locks: dict[str, asyncio.Lock] = {}
        self._ended: OrderedDict[str, None] = OrderedDict()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        session = header(scope["headers"], SESSION)
        if session is None:
            await self._transport(scope, receive, self._owned(scope, send))
            return
        replay = Replay(receive)
        inner = self._of(session, scope)
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
                await self._revive(session, scope)
        self._locks.pop(session, None)
        inner = self._of(session, scope)
        await self._pass(scope, replay.again(), send, session, inner, last=True)

    def _end(self, session: str) -> None:
        """For good: a request that was still under way may keep something of it, and it is not to begin again."""
        self._ended[session] = None
        while len(self._ended) > MOST_ENDED:
            self._ended.popitem(last=False)

    async def release(self, session: str, scope: Scope) -> None:
        """End the transport's part of a session that another process has now: its client comes again, to that one."""
        self._gateway.announcer.disconnect(session)
        inner = self._of(session, scope)
        self._inner.pop(session, None)
        headers = [(SESSION, inner.encode())]
        headers += [each for each in scope["headers"] if each[0].lower() in (b"host", b"origin", VERSION)]
        ended: Scope = dict(scope) | {"method": "DELETE", "headers": headers}
        await self._transport(ended, _Once(b"").receive, _nobody)

    def _of(self, session: str, scope: Scope) -> str:
        """What the transport calls a session now."""
        return self._inner.get(session) or (inner(session) if scope.get(HOLDER_KEY) else session)

    async def _pass(
        self, scope: Scope, receive: Receive, send: Send, outer: str, inner: str, *, last: bool = False
    ) -> bool:
        """Hand a request on under the session's present name; false, and nothing sent, where it is not known."""
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

    async def _revive(self, session: str, scope: Scope) -> None:
        """Begin a session of the transport with what the client said when it began this one."""
        known = await self._gateway.book.find(session)
        if known is None or known.client is None:
            return
        status, headers = await self._say(scope, None, _request("initialize", known.client))
        inner = header(headers, SESSION)
        if status >= 400 or inner is None:
            LOGGER.warning("A session could not be continued: the transport answered %d", status)
            return
        version = str(known.client["protocolVersion"])
        await self._say(scope, (inner, version, session), _notification("notifications/initialized"))
        self._inner[session] = inner
        self._gateway.continue_session(session)
        LOGGER.info("A session of an earlier process goes on")

    def _owned(self, scope: Scope, send: Send) -> Send:
        """A session that begins is its holder's, where tokens are needed."""
        holder: Holder | None = scope.get(HOLDER_KEY)

        async def owned(message: Message) -> None:
            if holder and message["type"] == "http.response.start" and (begun := header(message["headers"], SESSION)):
                named = self._signing.session(begun, holder)
                message = {**message, "headers": with_header(message["headers"], SESSION, named)}
            await send(message)

        return owned

    async def _say(self, scope: Scope, within: tuple[str, str, str] | None, body: bytes) -> tuple[int, Headers]:
        """Send the transport one message on the client's behalf, with the client's own other headers."""
        left_out = {SESSION, VERSION, b"accept", b"content-type", b"content-length", b"last-event-id"}
        headers = [(name, value) for name, value in scope["headers"] if name not in left_out]
        headers += [ACCEPT, JSON, (b"content-length", str(len(body)).encode())]
        own: dict[str, Any] = dict(scope) | {"method": "POST"}
        if within is not None:
            inner, version, outer = within
            headers += [(SESSION, inner.encode()), (VERSION, version.encode())]
            own[SESSION_KEY] = outer
        answer: dict[str, Any] = {}

        async def send(message: Message) -> None:
            if message["type"] == "http.response.start":
                answer.update(message)

        await self._transport(own | {"headers": headers}, _Once(body).receive, send)
        return answer["status"], list(answer.get("headers", ()))


class _Once:
    """A body of our own, behind which nobody hangs up."""

    def __init__(self, body: bytes) -> None:
        self._body: bytes | None = body

    async def receive(self) -> Message:
        if self._body is None:
            await asyncio.Event().wait()
        body, self._body = self._body, None
        return {"type": "http.request", "body": body, "more_body": False}


async def _nobody(message: Message) -> None:
    """There is nobody to be told."""


def _request(method: str, params: JsonObject) -> bytes:
    return json.dumps({"jsonrpc": "2.0", "id": "revived", "method": method, "params": params}).encode()


def _notification(method: str) -> bytes:
    return json.dumps({"jsonrpc": "2.0", "method": method}).encode()
