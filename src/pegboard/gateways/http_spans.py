"""The span of an HTTP request to a model or to the HTTP API, by the HTTP conventions."""

from __future__ import annotations

from http import HTTPStatus

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from pegboard.telemetry.otel import conventions as names
from pegboard.telemetry.trace_spans import Tracer, context_in

KNOWN = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})
OTHER = "_OTHER"


class TracedApp:
    """An ASGI application whose requests are traced. ``route`` is its path, or empty if its paths are not its own."""

    def __init__(self, app: ASGIApp, tracer: Tracer, *, routed: bool = False) -> None:
        self._app = app
        self._tracer = tracer
        self._routed = routed

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        method, path = scope["method"], scope["path"]
        known = method if method in KNOWN else OTHER
        attributes = {names.HTTP_METHOD: known, names.SCHEME: scope.get("scheme", "http")}
        if self._routed:
            attributes[names.HTTP_ROUTE] = path
        name = "HTTP" if known == OTHER else known
        span = self._tracer.start(
            f"{name} {path}" if self._routed else name,
            "server",
            attributes,
            parent=context_in(scope["headers"]),
            metric=names.HTTP_DURATION,
        )
        if span.recorded:
            attributes |= {names.PATH: path, names.NETWORK_VERSION: scope.get("http_version", "1.1")}

        async def noted(message: Message) -> None:
            if message["type"] == "http.response.start":
                status = message["status"]
                span.attributes[names.HTTP_STATUS] = status
                if status >= HTTPStatus.INTERNAL_SERVER_ERROR:
                    span.fail(str(status))
            await send(message)

        with span:
            await self._app(scope, receive, noted)
