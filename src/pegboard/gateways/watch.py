"""For those who run this: /readyz and /metrics, guarded like /healthz."""

from __future__ import annotations

from mcp.server.transport_security import TransportSecurityMiddleware, TransportSecuritySettings
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.types import Receive, Scope, Send

from pegboard.errors import ConfigError
from pegboard.gateways.readiness import Readiness
from pegboard.stores.metrics import Metrics

READY = "/readyz"
METRICS = "/metrics"
PATHS = frozenset({READY, METRICS})


class Watch:
    """An ASGI application for `PATHS`. ``metrics`` is None where they are switched off."""

    def __init__(self, readiness: Readiness, metrics: Metrics | None, security: TransportSecuritySettings) -> None:
        self._readiness = readiness
        self._metrics = metrics
        self._guard = TransportSecurityMiddleware(security)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        request = Request(scope)
        answer = await self._guard.validate_request(request) or self._answer(request)
        await answer(scope, receive, send)

    def _answer(self, request: Request) -> Response:
        if request.url.path == READY:
            ready, said = self._readiness.report()
            return JSONResponse(said, 200 if ready else 503)
        if self._metrics is None:
            off = ConfigError("There are no metrics here.", remedy="Set metrics = true.")
            return JSONResponse(off.payload(), 404)
        body, content_type = self._metrics.render(request.headers.get("accept", ""))
        return Response(body, headers={"content-type": content_type})
