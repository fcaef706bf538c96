"""The application that routes every HTTP request: MCP at /mcp, the HTTP API, the dashboard at /ui, readiness and
metrics, and models everywhere else."""

from __future__ import annotations

import asyncio
from typing import Protocol

from mcp.server.transport_security import TransportSecuritySettings
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from pegboard.errors import PegboardError
from pegboard.gateways.dashboard.dashboard_app import PATH as DASHBOARD
from pegboard.gateways.events_endpoint import PATH as EVENTS
from pegboard.gateways.http_api.api_app import PATHS as API_PATHS
from pegboard.gateways.http_spans import TracedApp
from pegboard.gateways.origins import OriginCheck, preflight_answer, readable_by_page
from pegboard.gateways.readiness import PATHS, Readiness, Watch
from pegboard.telemetry.metrics import Metrics
from pegboard.telemetry.trace_spans import Tracer

BODY_SECONDS = 60.0
OURS = ("/mcp", "/healthz", "/oauth", "/.well-known/oauth-protected-resource")
UPGRADES = b"websocket"
SLOWEST = 16 * 1024
"""Minimum rate of a request body after its first seconds, in bytes per second."""
ENDED: Message = {"type": "http.disconnect"}
REFUSED = b'{"error":"body_too_slow","message":"The body of the request did not arrive in time."}'


class ModelsApp(Protocol):
    """The application of the LLM gateway, which can also refuse a request in its client's format."""

    @property
    def serves(self) -> bool:
        """Whether the LLM gateway is configured now."""
        ...

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None: ...

    async def refuse(self, error: PegboardError, scope: Scope, send: Send) -> None: ...


class NoWebSockets(PegboardError):  # noqa: N818
    code = "no_websockets"
    http_status = 501

    def __init__(self) -> None:
        super().__init__(
            "WebSockets are not supported.", remedy="Use the provider's HTTP interface, or connect to it directly."
        )


class Front:
    """Routes each request. ``models`` is None without an LLM gateway, ``api`` without the HTTP API,
    ``dashboard`` without one.

    Web pages may use models only under the host names of this server: they cannot rebind their own. ``underway`` is the
    number of model requests that are not finished; ``quiet`` is set while it is 0. With a ``tracer``, requests to
    models and to the HTTP API have a span; those to MCP have one for each message.
    """

    def __init__(
        self,
        mcp: ASGIApp,
        models: ModelsApp | None,
        security: TransportSecuritySettings,
        *,
        api: ASGIApp | None = None,
        dashboard: ASGIApp | None = None,
        readiness: Readiness,
        metrics: Metrics | None = None,
        tracer: Tracer | None = None,
        feed: ASGIApp | None = None,
        body_seconds: float = BODY_SECONDS,
    ) -> None:
        self._mcp = mcp
        self._models = models
        self._api = TracedApp(api, tracer, routed=True) if api is not None and tracer is not None else api
        self._traced_models = TracedApp(models, tracer) if models is not None and tracer is not None else models
        self._dashboard = dashboard
        self._feed = feed
        self._body_seconds = body_seconds
        self._origins = OriginCheck(security)
        self._watch = Watch(readiness, metrics, security)
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
        if path in PATHS:
            await self._watch(scope, receive, send)
        elif path == EVENTS and self._feed is not None:
            await self._feed(scope, receive, send)
        elif path in API_PATHS and self._api is not None:
            await self._api(scope, receive, send)
        elif self._dashboard is not None and (path == DASHBOARD or path.startswith(f"{DASHBOARD}/")):
            await self._dashboard(scope, receive, send)
        elif (
            any(path == ours or path.startswith(f"{ours}/") for ours in OURS)
            or self._models is None
            or not self._models.serves
        ):
            await self._mcp(scope, receive, send)
        else:
            await self._to_models(self._models, scope, receive, send)

    async def _to_models(self, models: ModelsApp, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            if dict(scope["headers"]).get(b"upgrade", b"").lower() == UPGRADES:
                raise NoWebSockets
            await self._origins.check(scope)
        except PegboardError as error:
            await models.refuse(error, scope, send)
            return
        if (preflight := preflight_answer(scope)) is not None:
            await preflight(scope, receive, send)
            return
        send = readable_by_page(scope, send)
        self.underway += 1
        self.quiet.clear()
        try:
            await (self._traced_models or models)(scope, receive, send)
        finally:
            self.underway -= 1
            if not self.underway:
                self.quiet.set()


class TimedBody:
    """The `receive` and `send` of a request: 408 if its body takes more than ``seconds``, plus time for large ones.

    After that, what the application sends is discarded, and the application sees a disconnected client.
    """

    def __init__(self, receive: Receive, send: Send, seconds: float) -> None:
        self._receive = receive
        self._send = send
        self._seconds = seconds
        self._began = asyncio.get_running_loop().time()
        self._size = 0
        self._whole = False
        self._begun = False
        self._late = False

    async def receive(self) -> Message:
        if self._late:
            return ENDED
        if self._whole:
            return await self._receive()
        try:
            async with asyncio.timeout_at(self._began + self._seconds + self._size / SLOWEST):
                message = await self._receive()
        except TimeoutError:
            await self._refuse()
            return ENDED
        self._size += len(message.get("body", b""))
        self._whole = message["type"] != "http.request" or not message.get("more_body", False)
        return message

    async def send(self, message: Message) -> None:
        if self._late:
            return
        self._begun = True
        await self._send(message)

    async def _refuse(self) -> None:
        self._late = True
        if self._begun:
            return
        headers = [(b"content-type", b"application/json"), (b"connection", b"close")]
        length = (b"content-length", str(len(REFUSED)).encode())
        await self._send({"type": "http.response.start", "status": 408, "headers": [*headers, length]})
        await self._send({"type": "http.response.body", "body": REFUSED})


def _closing(send: Send) -> Send:
    """A `send` that closes the connection after the answer, so that the client's next request goes to another
    process."""

    async def closing(message: Message) -> None:
        if message["type"] == "http.response.start":
            message = {**message, "headers": [*message.get("headers", ()), (b"connection", b"close")]}
        await send(message)

    return closing
