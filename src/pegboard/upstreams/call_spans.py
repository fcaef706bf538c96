"""The span of a request to a server, by the MCP conventions, and its context in the request's `_meta` (SEP-414)."""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import lru_cache
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from mcp import MCPError

from pegboard.telemetry.otel import conventions as names
from pegboard.telemetry.trace_spans import CURRENT, TRACEPARENT, TRACESTATE, Attribute, Tracer, TraceSpan

if TYPE_CHECKING:
    from pegboard.settings.server_spec import ServerSpec
    from pegboard.upstreams.raw_requests import AnyRequest

CALL = "tools/call"
OF_RESOURCES = "resources/"
LONGEST_NAME = 200
LONGEST_CONTENT = 8_000
"""Characters of arguments and results, where they are recorded."""
PORTS = {"http": 80, "https": 443}


class CallSpan:
    """The span of a request, as a context manager; tell it the result. The request's `_meta` then has the context
    for the server, in place of the client's."""

    __slots__ = ("_content", "_span", "_tells")

    def __init__(self, tracer: Tracer, spec: ServerSpec, protocol: str, request: AnyRequest) -> None:
        method, params = request.method, request.params
        name = str(getattr(params, "name", ""))[:LONGEST_NAME]
        uri = (
            str(getattr(params, "uri", "")) if OF_RESOURCES in method else ""
        )  # pydantic is slow to say that it has none
        attributes: dict[str, Attribute] = {names.METHOD: method, **_where(spec.url or "", is_local=bool(spec.command))}
        attributes |= target_attributes(method, name, uri)
        if protocol:
            attributes[names.PROTOCOL] = protocol
        span = tracer.start(f"{method} {name}" if name else method, "client", attributes, metric=names.CLIENT_DURATION)
        if span.recorded:
            attributes["pegboard.server"] = spec.name
            if tracer.content and method == CALL:
                attributes[names.ARGUMENTS] = as_text(getattr(params, "arguments", None) or {})
        if params is not None:
            params.meta = with_context(params.meta, span)
        self._span, self._tells = span, tracer.content
        self._content = tracer.content and span.recorded

    def __enter__(self) -> CallSpan:
        self._span.__enter__()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, traceback: object) -> None:
        if isinstance(error, MCPError):
            fail(self._span, error.error.code, error.error.message if self._tells else "")
        self._span.__exit__(kind, error, traceback)

    def answered(self, result: dict[str, Any]) -> None:
        mark_result(self._span, result, content=self._content)


def with_context(meta: Any, span: TraceSpan) -> Any:
    """The `_meta` with the context of a span."""
    found = {key: value for key, value in dict(meta or {}).items() if key != TRACESTATE}
    found[TRACEPARENT] = span.context.traceparent
    return found | ({TRACESTATE: span.context.state} if span.context.state else {})


def target_attributes(method: str, name: str, uri: str = "") -> dict[str, Attribute]:
    """What a request is about: a tool, a prompt or a resource, without the query of its address. Of an address that is
    no URL, nothing is told."""
    if method == CALL:
        return {names.OPERATION: names.EXECUTE, names.TOOL: name}
    if method == "prompts/get":
        return {names.PROMPT: name}
    if uri and OF_RESOURCES in method:
        try:
            parts = urlsplit(uri[:LONGEST_CONTENT])
        except ValueError:
            return {}
        return {names.RESOURCE: parts._replace(netloc=parts.netloc.rpartition("@")[2], query="", fragment="").geturl()}
    return {}


def fail(span: TraceSpan, code: int, message: str = "") -> None:
    """A JSON-RPC error with this code."""
    span.attributes[names.RPC_STATUS] = str(code)
    span.fail(str(code), message)


def mark_result(span: TraceSpan, result: Mapping[str, Any], *, content: bool) -> None:
    """A tool's result with `isError` is an error; with ``content``, the result is recorded."""
    if result.get("isError") is True:
        span.fail(names.TOOL_ERROR)
    elif content and "content" in result:
        span.attributes[names.RESULT] = as_text({key: result[key] for key in result if key != "_meta"})


def note_request_id(name: object) -> None:
    """The id under which the current request goes to its server."""
    span = CURRENT.get()
    if span is not None and span.recorded and span.metric == names.CLIENT_DURATION:
        span.attributes[names.REQUEST_ID] = str(name)


def as_text(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, default=str)[:LONGEST_CONTENT]


@lru_cache(maxsize=256)
def _where(url: str, *, is_local: bool) -> dict[str, Attribute]:
    if is_local:
        return {names.TRANSPORT: "pipe"}
    parts = urlsplit(url)
    host = parts.hostname or ""
    if not host or "$" in host:  # a variable: its value is known only to the connection
        return {names.TRANSPORT: "tcp", names.NETWORK_PROTOCOL: "http"}
    port = parts.port if "$" not in parts.netloc else None
    found: dict[str, Attribute] = {names.ADDRESS: host, names.PORT: port or PORTS.get(parts.scheme, 0)}
    return {names.TRANSPORT: "tcp", names.NETWORK_PROTOCOL: "http", **found}
