"""Requests of revision 2026-07-28 on HTTP, of which most are answered at once.

The SDK starts two tasks and a stream for each request, in case something is sent before the answer, and cancels them.
Here one task handles it, and the rest begins when it is needed. What the SDK has to refuse, and streams of
notifications, are left to it.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import anyio
import pydantic_core
from mcp.server.connection import Connection
from mcp.server.lowlevel import Server
from mcp.server.runner import modern_error_data, serve_one
from mcp.server.streamable_http import check_accept_headers
from mcp.server.transport_security import TransportSecurityMiddleware, TransportSecuritySettings
from mcp.shared.dispatcher import CallOptions
from mcp.shared.exceptions import NoBackChannelError
from mcp.shared.inbound import (
    ERROR_CODE_HTTP_STATUS,
    MCP_METHOD_HEADER,
    MCP_NAME_HEADER,
    MCP_PROTOCOL_VERSION_HEADER,
    X_MCP_HEADER_KEY,
    InboundLadderRejection,
    InboundModernRoute,
    classify_inbound_request,
)
from mcp.shared.jsonrpc_dispatcher import progress_token_from_params
from mcp.shared.message import MessageMetadata, ServerMessageMetadata
from mcp.shared.transport_context import TransportContext
from mcp_types import ErrorData, JSONRPCError, JSONRPCRequest, ProgressToken, RequestId
from mcp_types.version import MODERN_PROTOCOL_VERSIONS
from pydantic import ValidationError
from starlette.requests import Request
from starlette.types import ASGIApp, Receive, Scope, Send

from pegboard.gateways.mcp.cluster.http_messages import ReplayableBody, header
from pegboard.model import JsonObject

INSTANT = 0.05
"""Seconds after which it is watched whether the client goes away, which ends its request."""
PING_SECONDS = 15.0
"""Seconds between the comments that keep a silent stream open, as the SDK has them."""
PING = b": ping\r\n\r\n"
OK = 200
VERSION = MCP_PROTOCOL_VERSION_HEADER.encode()
ROUTING = (MCP_PROTOCOL_VERSION_HEADER, MCP_METHOD_HEADER, MCP_NAME_HEADER)
MOST_KNOWN = 10_000
"""Tools whose schemas are remembered; then it starts over."""
JSON = [(b"content-type", b"application/json")]
STREAM = [
    (b"content-type", b"text/event-stream"),
    (b"cache-control", b"no-cache, no-transform"),
    (b"connection", b"keep-alive"),
    (b"x-accel-buffering", b"no"),
]


class ModernRequests:
    """The ASGI application of one server for these requests; the ``otherwise`` application gets all others.

    ``security`` says by which host names the server is known, ``lifespan`` is its state while it runs.
    """

    def __init__(
        self, server: Server[Any], security: TransportSecuritySettings | None, lifespan: Any, *, otherwise: ASGIApp
    ) -> None:
        self._server = server
        self._guard = TransportSecurityMiddleware(security)
        self._lifespan = lifespan
        self._otherwise = otherwise

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["method"] == "POST" and header(scope["headers"], VERSION) in MODERN_PROTOCOL_VERSIONS:
            body = ReplayableBody(receive)
            if await self._answered(scope, body, send):
                return
            receive = body.again()
        await self._otherwise(scope, receive, send)

    async def _answered(self, scope: Scope, body: ReplayableBody, send: Send) -> bool:
        """Whether the request was answered here. If not, nothing has been sent."""
        request = Request(scope)
        refused = await self._guard.validate_request(request, is_post=True)
        if refused is not None:
            await refused(scope, body.receive, send)
            return True
        found = self._request(request, await body.body())
        if found is None:
            return False
        message, route = found
        answer = Answering(send, message.id)
        call = _Call(
            transport=TransportContext(kind="streamable-http", can_send_request=False, headers=request.headers),
            request_id=message.id,
            message_metadata=ServerMessageMetadata(request_context=request),
            progress_token=progress_token_from_params(message.params),
            answer=answer,
        )
        connection = Connection.from_envelope(route.protocol_version, route.client_info, route.client_capabilities)
        handling = anyio.CancelScope()
        serving = serve_one(
            self._server, call, message.method, message.params, connection=connection, lifespan_state=self._lifespan
        )
        with _accompanied(handling, answer, body.receive):
            try:
                with handling:
                    result = await serving
            except Exception as error:  # noqa: BLE001  # answered as the SDK answers it, which logs it too
                await answer.failed(modern_error_data(error))
            else:
                if not handling.cancelled_caught:
                    await answer.ended(result)
        return True

    def _request(self, request: Request, body: bytes) -> tuple[JSONRPCRequest, InboundModernRoute] | None:
        """The request and where it goes, unless the SDK has to answer it."""
        headers = _single(request.scope["headers"])
        if headers is None or check_accept_headers(request) != (True, True):
            return None
        try:
            decoded = json.loads(body)
            message = JSONRPCRequest.model_validate(decoded)
        except (ValueError, RecursionError, ValidationError):
            return None
        if message.method == "subscriptions/listen" or self._mirrors_arguments(message):
            return None
        route = classify_inbound_request(decoded, headers=headers)
        return None if isinstance(route, InboundLadderRejection) else (message, route)

    def _mirrors_arguments(self, message: JSONRPCRequest) -> bool:
        """Whether the SDK has to compare headers with the arguments of a call (`Mcp-Param-*`)."""
        schema_of, name = self._server.get_tool_input_schema, (message.params or {}).get("name")
        if message.method != "tools/call" or not isinstance(name, str):
            return False
        return schema_of is None or schema_of(name) is not None


class MirroredArguments:
    """The schemas of tools by name if some arguments are also sent as headers (MCP 2026-07-28, transports): the SDK
    walks what it is given at every call.

    ``schema_of`` is the schema of any tool. Each is searched once for as long as it is the same object.
    """

    def __init__(self, schema_of: Callable[[str], JsonObject | None]) -> None:
        self._schema_of = schema_of
        self._known: dict[str, tuple[JsonObject, bool]] = {}

    def __call__(self, name: str) -> JsonObject | None:
        schema = self._schema_of(name)
        if schema is None:
            return None
        known = self._known.get(name)
        if known is None or known[0] is not schema:
            if len(self._known) >= MOST_KNOWN:
                self._known.clear()
            known = self._known[name] = (schema, X_MCP_HEADER_KEY in str(schema))
        return schema if known[1] else None


@dataclass(slots=True, kw_only=True)
class _Call:
    """The SDK's `DispatchContext` of one request: nothing can be asked of its client, and it can be told things."""

    transport: TransportContext
    request_id: RequestId
    message_metadata: MessageMetadata
    progress_token: ProgressToken | None
    answer: Answering
    cancel_requested: anyio.Event = field(default_factory=anyio.Event)
    can_send_request: bool = False

    async def send_raw_request(
        self, method: str, params: Mapping[str, Any] | None, opts: CallOptions | None = None
    ) -> dict[str, Any]:
        raise NoBackChannelError(method)

    async def notify(self, method: str, params: Mapping[str, Any] | None, opts: CallOptions | None = None) -> None:
        said = {} if params is None else {"params": dict(params)}
        await self.answer.before({"jsonrpc": "2.0", "method": method} | said)

    async def progress(self, progress: float, total: float | None = None, message: str | None = None) -> None:
        if self.progress_token is None:
            return
        more = {"total": total, "message": message}
        said = {"progressToken": self.progress_token, "progress": progress}
        await self.notify(
            "notifications/progress", said | {name: value for name, value in more.items() if value is not None}
        )


class Answering:
    """What is sent for one request: JSON, or an event stream if something comes before the answer."""

    def __init__(self, send: Send, request: RequestId) -> None:
        self._send = send
        self._request = request
        self._lock = asyncio.Lock()
        self._streams = False
        self._ended = False

    async def before(self, message: Mapping[str, Any] | None) -> None:
        """Send a message before the answer, or without one a sign of life. After the answer it is dropped."""
        data = PING if message is None else _event(message)
        async with self._lock:
            if not self._ended:
                await self._begin(OK, STREAM, streams=True)
                await self._send({"type": "http.response.body", "body": data, "more_body": True})

    async def ended(self, result: Mapping[str, Any]) -> None:
        await self._end(OK, {"jsonrpc": "2.0", "id": self._request, "result": result})

    async def failed(self, error: ErrorData) -> None:
        message = JSONRPCError(jsonrpc="2.0", id=self._request, error=error)
        status = ERROR_CODE_HTTP_STATUS.get(error.code, OK)
        await self._end(status, message.model_dump(mode="json", by_alias=True, exclude_none=True))

    async def _end(self, status: int, message: Mapping[str, Any]) -> None:
        async with self._lock:
            self._ended = True
            data = _event(message) if self._streams else _written(message)
            await self._begin(status, [*JSON, (b"content-length", str(len(data)).encode())])
            await self._send({"type": "http.response.body", "body": data, "more_body": False})

    async def _begin(self, status: int, headers: Iterable[tuple[bytes, bytes]], *, streams: bool = False) -> None:
        """Send the head of the answer, unless a stream has begun."""
        if not self._streams:
            self._streams = streams
            await self._send({"type": "http.response.start", "status": status, "headers": list(headers)})


@contextmanager
def _accompanied(handling: anyio.CancelScope, answer: Answering, receive: Receive) -> Iterator[None]:
    """Cancels the ``handling`` of a request if its client goes away, and keeps its stream open, as soon as it takes
    longer than an instant."""
    loop = asyncio.get_running_loop()
    tasks: list[asyncio.Task[None]] = []

    def begin() -> None:
        tasks.extend(loop.create_task(each) for each in (_watched(receive, handling), _pings(answer)))

    timer = loop.call_later(INSTANT, begin)
    try:
        yield
    finally:
        timer.cancel()
        for task in tasks:
            task.cancel()


async def _watched(receive: Receive, handling: anyio.CancelScope) -> None:
    """A bare `Task.cancel` would break into what is shielded, such as a charge that is being held."""
    while (await receive())["type"] != "http.disconnect":
        pass
    handling.cancel()


async def _pings(answer: Answering) -> None:
    while True:
        await asyncio.sleep(PING_SECONDS)
        await answer.before(None)


def _single(headers: Iterable[tuple[bytes, bytes]]) -> dict[str, str] | None:
    """The headers by name. None if one that says where the request goes is there more than once."""
    found: dict[str, str] = {}
    for raw, value in headers:
        name = raw.decode("latin-1").lower()
        if name in found and name in ROUTING:
            return None
        found.setdefault(name, value.decode("latin-1"))
    return found


def _event(message: Mapping[str, Any]) -> bytes:
    return b"event: message\r\ndata: " + _written(message) + b"\r\n\r\n"


def _written(message: Mapping[str, Any]) -> bytes:
    """As JSON, in ASCII where half of a surrogate pair is in a text: UTF-8 has no such thing."""
    try:
        return pydantic_core.to_json(message)
    except pydantic_core.PydanticSerializationError:
        return json.dumps(message, separators=(",", ":")).encode()
