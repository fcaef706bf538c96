"""One application before everything that is served on HTTP: MCP at /mcp, how it goes, and models everywhere else."""

from __future__ import annotations

import asyncio
from typing import Protocol

from mcp.server.transport_security import TransportSecuritySettings
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from pegboard.errors import PegboardError
from pegboard.gateways import watch
from pegboard.gateways.body_time import TimedBody
from pegboard.gateways.origins import OriginCheck
from pegboard.gateways.readiness import Readiness
from pegboard.stores.metrics import Metrics

BODY_SECONDS = 60.0
OURS = ("/mcp", "/healthz")
UPGRADES = b"websocket"


class Models(Protocol):
    """The application before models, which can refuse a request in the shape that its client understands."""

    @property
    def serves(self) -> bool:
        """Whether model requests are for it now."""
        ...

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None: ...

    async def refuse(self, error: PegboardError, scope: Scope, send: Send) -> None: ...


class NoWebSockets(PegboardError):  # noqa: N818
    code = "no_websockets"
    http_status = 501

    def __init__(self) -> None:
        super().__init__(
            "WebSockets are not passed on.", remedy="Use the provider's HTTP interface, or go there directly."
        )


class Front:
    """Which door a request is for. ``models`` may be None where there is no LLM gateway.

    A page in a browser may use models by the names only that this server is known by: it cannot rebind its own.
    ``underway`` is the number of requests to models whose answers have not ended; ``quiet`` is set while it is 0.
    """

    def __init__(
        self,
        mcp: ASGIApp,
        models: Models | None,
        security: TransportSecuritySettings,
        *,
        readiness: Readiness,
        metrics: Metrics | None = None,
        body_seconds: float = BODY_SECONDS,
    ) -> None:
        self._mcp = mcp
        self._models = models
        self._body_seconds = body_seconds
        self._origins = OriginCheck(security)
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
        elif (
            self._models is None
            or not self._models.serves
            or any(path == ours or path.startswith(f"{ours}/") for ours in OURS)
        ):
            await self._mcp(scope, receive, send)
        else:
            await self._to_models(self._models, scope, receive, send)

    async def _to_models(self, models: Models, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            if dict(scope["headers"]).get(b"upgrade", b"").lower() == UPGRADES:
                raise NoWebSockets
            await self._origins.check(scope)
        except PegboardError as error:
            await models.refuse(error, scope, send)
            return
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
