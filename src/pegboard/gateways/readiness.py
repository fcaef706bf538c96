"""Readiness of this process, with reasons, and the endpoints /readyz and /metrics."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from mcp.server.transport_security import TransportSecurityMiddleware, TransportSecuritySettings
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.types import Receive, Scope, Send

from pegboard.errors import ConfigError, PegboardError
from pegboard.protocols import Encoder
from pegboard.telemetry.metrics import Metrics

LOGGER = logging.getLogger(__name__)
RETRY_SECONDS = 5.0
ANY_TEXT = "Ready?"
Check = Callable[[], str]
"""A public description of a problem; empty if there is none."""
READY = "/readyz"
METRICS = "/metrics"
PATHS = frozenset({READY, METRICS})


@dataclass(slots=True, kw_only=True)
class Readiness:
    """The process is not ready while a check in ``needed`` fails. Failures in ``missed`` are only reported: if a store
    outage made processes unready, all processes on that store would drop out at once."""

    needed: list[Check] = field(default_factory=list)
    missed: list[Check] = field(default_factory=list)
    draining: bool = False

    def report(self) -> tuple[bool, dict[str, Any]]:
        """Whether the process is ready, and the report as JSON."""
        reasons = ["The process is shutting down."] if self.draining else _amiss(self.needed)
        status = "not ready" if reasons else "ready"
        return not reasons, {"status": status, "reasons": reasons, "degraded": _amiss(self.missed)}


class Warming:
    """Loads an encoder before the first request needs it. Later failures are reported by the requests themselves."""

    def __init__(self, encoder: Encoder) -> None:
        self._encoder = encoder
        self._amiss = "The encoder is being loaded."

    def amiss(self) -> str:
        return self._amiss

    async def run(self) -> None:
        """Retry until it works."""
        while self._amiss:
            try:
                await self._encoder.encode([ANY_TEXT])
                self._amiss = ""
            except PegboardError as error:
                LOGGER.error("Not ready: %s", error)
                self._amiss = "The encoder does not work."
                await asyncio.sleep(RETRY_SECONDS)


class Watch:
    """The ASGI application for `PATHS`. ``metrics`` is None if metrics are disabled."""

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
            off = ConfigError("Metrics are disabled.", remedy="Set metrics = true.")
            return JSONResponse(off.payload(), 404)
        body, content_type = self._metrics.render(request.headers.get("accept", ""))
        return Response(body, headers={"content-type": content_type})


def _amiss(checks: list[Check]) -> list[str]:
    return [said for check in checks if (said := check())]
