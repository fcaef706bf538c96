"""The span of a client's request, by the MCP conventions, in place of the SDK's middleware.

The SDK's spans have the texts of exceptions and what clients call tools as their names, whatever it is.
"""

from __future__ import annotations

from typing import Any

import mcp_types as types
from mcp import MCPError
from mcp.server._otel import OpenTelemetryMiddleware
from mcp.server.context import CallNext, HandlerResult, ServerRequestContext
from mcp.server.lowlevel import Server
from mcp.server.streamable_http import MCP_SESSION_ID_HEADER
from pydantic import BaseModel, ValidationError

from pegboard.activity_entries import conversation_mark
from pegboard.gateways.mcp.transport.client_connection import SESSION_KEY
from pegboard.telemetry.otel import conventions as names
from pegboard.telemetry.trace_spans import Attribute, Tracer, TraceSpan, context_in, context_of
from pegboard.upstreams.call_spans import CALL, LONGEST_NAME, as_text, fail, mark_result, target_attributes

Context = ServerRequestContext[Any, Any]


def trace_requests(server: Server[Any], tracer: Tracer) -> None:
    """Trace every message that the server receives, once."""
    others = [each for each in server.middleware if not isinstance(each, OpenTelemetryMiddleware)]
    server.middleware[:] = [RequestSpans(tracer), *others]


class RequestSpans:
    """A middleware of the SDK's server. The parent is the context in `_meta`, else that of the HTTP request."""

    def __init__(self, tracer: Tracer) -> None:
        self._tracer = tracer

    async def __call__(self, ctx: Context, call_next: CallNext) -> HandlerResult:
        of_message = context_of(ctx.meta)
        of_http = context_in(ctx.request.scope["headers"]) if ctx.request is not None else None
        links = (of_http,) if of_message is not None and of_http is not None else ()
        params = ctx.params or {}
        name = _printable(params.get("name"))
        span = self._tracer.start(
            f"{ctx.method} {name}" if name else ctx.method,
            "server",
            _measured(ctx, name, str(params.get("uri", ""))),
            parent=of_message or of_http,
            links=links,
            metric=names.SERVER_DURATION,
        )
        if span.recorded:
            span.attributes |= self._described(ctx)
        with span:
            try:
                result = await call_next(ctx)
            except MCPError as error:
                fail(span, error.error.code, error.error.message if self._tracer.content else "")
                raise
            except ValidationError:
                fail(span, types.INVALID_PARAMS)
                raise
            if ctx.method == CALL:
                self._mark(span, result)
            return result

    def _described(self, ctx: Context) -> dict[str, Attribute]:
        """What only a recorded span says."""
        found: dict[str, Attribute] = {}
        if ctx.request_id is not None:
            found[names.REQUEST_ID] = str(ctx.request_id)[:LONGEST_NAME]
        if ctx.request is not None:
            found[names.NETWORK_VERSION] = str(ctx.request.scope.get("http_version", "1.1"))
            if session := ctx.request.scope.get(SESSION_KEY) or ctx.request.headers.get(MCP_SESSION_ID_HEADER):
                found[names.SESSION] = conversation_mark(str(session))  # its id itself could grant access to it
        if self._tracer.content and ctx.method == CALL:
            found[names.ARGUMENTS] = as_text((ctx.params or {}).get("arguments") or {})
        return found

    def _mark(self, span: TraceSpan, result: HandlerResult) -> None:
        if isinstance(result, BaseModel):
            result = result.model_dump(by_alias=True, mode="json", exclude_none=True)
        mark_result(span, result or {}, content=self._tracer.content and span.recorded)


def _measured(ctx: Context, name: str, uri: str) -> dict[str, Attribute]:
    """What the duration is counted by, and the target of the request."""
    found: dict[str, Attribute] = {names.METHOD: ctx.method, names.PROTOCOL: ctx.protocol_version}
    if ctx.request is None:
        found[names.TRANSPORT] = "pipe"
    else:
        found[names.TRANSPORT], found[names.NETWORK_PROTOCOL] = "tcp", "http"
    found |= target_attributes(ctx.method, name, uri)
    return found


def _printable(name: object) -> str:
    """A name as a client sent it, on one line."""
    if not isinstance(name, str):
        return ""
    cut = name[:LONGEST_NAME]
    return cut if cut.isprintable() else "".join(each if each.isprintable() else "\ufffd" for each in cut)
