"""One application before everything that is served on HTTP: MCP at /mcp, how it goes, and models everywhere else."""

from __future__ import annotations

import asyncio
import json

from mcp.server.transport_security import TransportSecurityMiddleware, TransportSecuritySettings
from starlette.requests import Request
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from pegboard.errors import PegboardError
from pegboard.gateways import watch
from pegboard.gateways.body_time import TimedBody
from pegboard.gateways.readiness import Readiness
from pegboard.stores.metrics import Metrics

BODY_SECONDS = 60.0
OURS = ("/mcp", "/healthz")
UPGRADES = b"websocket"
FROM_PAGES = frozenset({b"origin", b"sec-fetch-site"})
"""Headers that browsers send for pages, and other programs do not."""


class NoWebSockets(PegboardError):  # noqa: N818
    code = "no_websockets"
    http_status = 501

    def __init__(self) -> None:
        super().__init__(
            "WebSockets are not passed on.", remedy="Use the provider's HTTP interface, or go there directly."
        )


class Front:
    """Which door a request is for. ``models`` is None where the LLM gateway is switched off.

    A page in a browser may use models by the names only that this server is known by: it cannot rebind its own.
    ``underway`` is the number of requests to models whose answers have not ended; ``quiet`` is set while it is 0.
    """

    def __init__(
        self,
        mcp: ASGIApp,
        models: ASGIApp | None,
        security: TransportSecuritySettings,
        *,
        readiness: Readiness,
        metrics: Metrics | None = None,
        body_seconds: float = BODY_SECONDS,
    ) -> None:
        self._mcp = mcp
        self._models = models
        self._body_seconds = body_seconds
        self._guard = TransportSecurityMiddleware(security)
        self._watch = watch.Watch(readiness, metrics, security)
        self.readiness = readiness
        self.underway = 0
        self.quiet = asyncio.Event()
        self.quiet.set()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return
        path = scope["path"]
        timed = TimedBody(receive, send, self._body_seconds)
        receive, send = timed.receive, timed.send
        if self.readiness.draining:
            send = _closing(send)
        if path in watch.PATHS:
            await self._watch(scope, receive, send)
        elif self._models is None or any(path == ours or path.startswith(f"{ours}/") for ours in OURS):
            await self._mcp(scope, receive, send)
        else:
            await self._to_models(self._models, scope, receive, send)

    async def _to_models(self, models: ASGIApp, scope: Scope, receive: Receive, send: Send) -> None:
        headers = {name.lower(): value for name, value in scope["headers"]}
        if headers.get(b"upgrade", b"").lower() == UPGRADES:
            await _refuse(NoWebSockets(), send)
        elif headers.keys() & FROM_PAGES and (refused := await self._guard.validate_request(Request(scope))):
            await refused(scope, receive, send)
        else:
            self.underway += 1
            self.quiet.clear()
            try:
                await models(scope, receive, send)
            finally:
                self.underway -= 1
                if not self.underway:
                    self.quiet.set()


def _closing(send: Send) -> Send:
    """The connection is not used again: its client's next request shall go to another process."""

    async def closing(message: Message) -> None:
        if message["type"] == "http.response.start":
            message = {**message, "headers": [*message.get("headers", ()), (b"connection", b"close")]}
        await send(message)

    return closing


async def _refuse(error: PegboardError, send: Send) -> None:
    status, payload = error.to_http()
    body = json.dumps(payload).encode()
    headers = [(b"content-type", b"application/json"), (b"content-length", str(len(body)).encode())]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})
