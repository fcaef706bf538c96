"""Requests to a server without sessions (MCP 2026-07-28) on HTTP: each is a POST in the task of its caller.

The SDK's client keeps streams and tasks between requests, for sessions whose messages belong to no request. In this
revision everything that a server sends belongs to the request on whose stream it comes.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from typing import Any, cast

import anyio
import anyio.abc
import httpx2
import mcp_types as types
from mcp import Client, MCPError
from mcp.client._probe import negotiate_auto
from mcp.client.extension import NotificationBinding
from mcp.client.session import ClientSession
from mcp.client.streamable_http import RequestContext, StreamableHTTPTransport
from mcp.shared._otel import inject_trace_context, otel_span
from mcp.shared.dispatcher import (
    CallOptions,
    Dispatcher,
    OnNotify,
    OnNotifyIntercept,
    OnRequest,
    ProgressFnT,
    coerce_request_id,
    run_notify_intercept,
)
from mcp.shared.message import ClientMessageMetadata, SessionMessage
from opentelemetry import trace
from opentelemetry.trace import SpanKind
from pydantic import BaseModel

from pegboard.flags import Flag
from pegboard.upstreams.call_spans import note_request_id
from pegboard.upstreams.http_pools import HttpPools
from pegboard.upstreams.http_transport import NO_ANSWER, NOT_REACHED, UNSENT
from pegboard.upstreams.limits import UpstreamLimits
from pegboard.upstreams.message_streams import can_be_sent, unsendable
from pegboard.upstreams.raw_requests import is_traced

LOGGER = logging.getLogger(__name__)

CLOSED = "Connection closed"
MOST_OPEN = 100
"""Messages on the stream of one request that are being passed on; no more are read meanwhile."""
PROGRESS = "notifications/progress"
NO_RESULT = "The server's answer has no result"


class HandshakeEra(Exception):  # noqa: N818
    """The server wants the handshake of earlier revisions, and sessions."""


class StatelessDispatcher(Dispatcher[Any]):
    """The SDK's `Dispatcher`. ``ended`` is set when the connection is over, and ``error`` may say why; as with the
    SDK's own, that ends the requests in progress. ``heard`` is how many messages came so far.

    That the server cannot be reached fails one request, and calls ``doubt``; ``unreached`` is why the last one failed.
    """

    garbage = broken = ""
    unreached: httpx2.TransportError | None = None

    def __init__(self, transport: StreamableHTTPTransport, http: httpx2.AsyncClient, pools: HttpPools) -> None:
        self.ended = Flag()
        self.error: Exception | None = None
        self.heard = 0
        self._transport = transport
        self._http = http
        self._session: ClientSession | None = None
        self._opened = False
        self.doubt: Callable[[], None] = lambda: None
        self._pools = pools
        self._under_way: dict[types.RequestId, anyio.CancelScope] = {}
        self._tasks: dict[asyncio.Task[None], None] = {}  # a third of an empty set
        self._source: _Arrivals | None = None

    @asynccontextmanager
    async def introduced(self, client: Client) -> AsyncIterator[None]:
        """The client with a session of its own on this dispatcher. Raises HandshakeEra, and what a request raises that
        cannot be sent."""

        async def connect(*_options: object) -> Dispatcher[Any]:
            return self

        async def initialize() -> types.InitializeResult:
            raise HandshakeEra

        client._connect = connect
        session = self._session = await client._build_session(AsyncExitStack())
        session.initialize = initialize  # type: ignore[method-assign]  # what the SDK falls back to
        for binding in session._notification_bindings.values():
            queue: Any = _Spawning(self, binding)
            session._binding_queues[binding.method] = queue, queue
        try:
            await negotiate_auto(session)
            session._discover_result = self._pools.introduction(session._discover_result)
            session._discover_server_info = self._pools.introduction(session._discover_server_info)
            session._stamp = self._pools.stamp(session)
            self._opened = True
            client._session = session
            yield
        finally:
            client._session = None
            session._settle_listen_routes_closed()
            self._close()

    async def send_raw_request(
        self, method: str, params: Mapping[str, Any] | None, opts: CallOptions | None = None
    ) -> dict[str, Any]:
        """Raises MCPError, also when the time is over and for a connection that closes. Cancelling it ends the POST,
        which cancels the request at the server."""
        if self.ended.is_set():
            raise MCPError(types.CONNECTION_CLOSED, CLOSED)
        await anyio.lowlevel.checkpoint_if_cancelled()
        options, said = opts or {}, dict(params or {})
        if not is_traced():
            return await self._posted(method, said, options)
        name = said.get("name")
        attributes = {"mcp.method.name": method}
        shown = f"MCP send {method}{f' {name}' if isinstance(name, str) else ''}"
        with otel_span(shown, kind=SpanKind.CLIENT, attributes=attributes) as span:
            meta = dict(said.get("_meta") or {})
            inject_trace_context(meta)
            try:
                return await self._posted(method, said | ({"_meta": meta} if meta else {}), options, span)
            except MCPError as error:
                span.set_status(trace.StatusCode.ERROR, error.error.message)
                raise

    async def _posted(
        self, method: str, params: dict[str, Any], options: CallOptions, span: trace.Span | None = None
    ) -> dict[str, Any]:
        name = self._name(options)
        note_request_id(name)
        if span is not None:
            span.set_attribute("jsonrpc.request.id", str(name))
        progress = options.get("on_progress")
        if progress is not None:
            params["_meta"] = {**params.get("_meta", {}), "progressToken": name}
        request = types.JSONRPCRequest(jsonrpc="2.0", id=name, method=method, **({"params": params} if params else {}))
        arrivals = _Arrivals(self, name, progress)
        late = False
        with anyio.CancelScope(deadline=_deadline(options)) as scope:
            self._under_way[name] = scope
            try:
                await self._post(request, options.get("headers"), arrivals)
            finally:
                self._under_way.pop(name, None)
                late = anyio.current_time() >= scope.deadline
        outcome = arrivals.outcome
        if outcome is None and scope.cancelled_caught:
            closed = self.ended.is_set() or not late
            code = types.CONNECTION_CLOSED if closed else types.REQUEST_TIMEOUT
            raise MCPError(code, CLOSED if closed else f"Request {method!r} timed out")
        if outcome is None:
            raise MCPError(types.INTERNAL_ERROR, NO_RESULT)
        if isinstance(outcome, types.ErrorData):
            raise MCPError.from_error_data(outcome)
        return outcome

    async def _post(self, message: Any, headers: dict[str, str] | None, arrivals: _Arrivals) -> None:
        """A failure of the transport is one of this request alone. Another one ends the connection, unless the request
        is to blame. Raises MCPError."""
        metadata = ClientMessageMetadata(headers=headers) if headers else None
        context = RequestContext(
            client=self._http,
            session_id=None,
            session_message=SessionMessage(message, metadata),
            metadata=metadata,
            read_stream_writer=cast(Any, arrivals),
        )
        try:
            await self._transport._handle_post_request(context)
            self.unreached = None
        except Exception as error:
            if isinstance(error, ValueError | RecursionError) and not can_be_sent(message):
                raise unsendable(error) from error
            if not self._opened:
                raise
            if isinstance(error, httpx2.TransportError):
                raise self._failed(error) from error
            self.error = self.error or error
            self._close()
            raise MCPError(types.CONNECTION_CLOSED, CLOSED) from None

    def _failed(self, error: httpx2.TransportError) -> MCPError:
        if not isinstance(error, UNSENT):
            return MCPError(types.CONNECTION_CLOSED, NO_ANSWER)
        LOGGER.info("A server could not be reached: %r", error)
        self.unreached = error
        self.doubt()
        return MCPError(types.CONNECTION_CLOSED, NOT_REACHED)

    def _name(self, options: CallOptions) -> types.RequestId:
        given = options.get("request_id")
        if given is None:
            return next(self._pools.names)
        if given in self._under_way:
            raise ValueError(f"request id {given!r} is already in flight")
        return given

    def _close(self) -> None:
        self.ended.set()
        for scope in list(self._under_way.values()):
            scope.cancel()
        for task in list(self._tasks):
            task.cancel()

    @contextmanager
    def heard_from(self, arrivals: _Arrivals) -> Iterator[None]:
        """What is spawned within it is counted as this request's. Nothing within it may wait."""
        self.heard += 1
        self._source = arrivals
        try:
            yield
        finally:
            self._source = None

    def told(self, notice: types.JSONRPCNotification, name: types.RequestId, progress: ProgressFnT | None) -> None:
        """A notification came on the stream of a request. It is handled in the context of the request, in a task of
        its own: whoever is told must not keep the answer waiting."""
        session, said = self._session, notice.params or {}
        if session is None:
            return
        if notice.method == PROGRESS and progress is not None and _is_of(said.get("progressToken"), name):
            self.spawn(_reported(progress, said))
        if not run_notify_intercept(session._intercept_notification, notice.method, notice.params):
            self.spawn(session._on_notify(cast(Any, None), notice.method, notice.params))

    def refuse(self, request: types.JSONRPCRequest) -> None:
        """A server of this revision has no requests of its own."""
        error = types.ErrorData(code=types.METHOD_NOT_FOUND, message="Method not found", data=request.method)
        message = types.JSONRPCError(jsonrpc="2.0", id=request.id, error=error)
        self.spawn(self._post(message, None, _Arrivals(self, request.id, None)))

    def spawn(self, work: Coroutine[Any, Any, None]) -> None:
        """Raises nothing: what fails is one message."""
        task = asyncio.get_running_loop().create_task(_contained(work))
        self._tasks[task] = None
        task.add_done_callback(self._tasks.pop)
        if self._source is not None:
            self._source.opened(task)

    async def notify(self, method: str, params: Mapping[str, Any] | None, opts: CallOptions | None = None) -> None:
        """Clients of this revision have no notifications; a request is cancelled by the end of its POST."""

    async def run(
        self,
        on_request: OnRequest,
        on_notify: OnNotify,
        on_notify_intercept: OnNotifyIntercept | None = None,
        *,
        task_status: anyio.abc.TaskStatus[None] = anyio.TASK_STATUS_IGNORED,
    ) -> None:
        """Nothing runs between requests."""
        task_status.started()


def stateless(url: str, http: httpx2.AsyncClient, limits: UpstreamLimits, pools: HttpPools) -> StatelessDispatcher:
    """For a client whose connections are of the ``pools``."""
    return StatelessDispatcher(StreamableHTTPTransport(url, max_sse_event_size=limits.result), http, pools)


class _Arrivals:
    """Takes what comes on the stream of one request, in place of the SDK's stream of the session."""

    def __init__(self, dispatcher: StatelessDispatcher, name: types.RequestId, progress: ProgressFnT | None) -> None:
        self.outcome: dict[str, Any] | types.ErrorData | None = None
        self._dispatcher = dispatcher
        self._name = name
        self._progress = progress
        self._open = 0
        self._room: asyncio.Future[None] | None = None

    def opened(self, task: asyncio.Task[None]) -> None:
        """A message of this stream is passed on in this task."""
        self._open += 1
        task.add_done_callback(self._closed)

    def _closed(self, _task: asyncio.Task[None]) -> None:
        self._open -= 1
        if self._room is not None and not self._room.done():
            self._room.set_result(None)

    async def send(self, item: SessionMessage | Exception) -> None:
        if isinstance(item, Exception):
            LOGGER.debug("A message cannot be read: %s", type(item).__name__)
            return
        while self._open >= MOST_OPEN:
            self._room = asyncio.get_running_loop().create_future()
            await self._room
        with self._dispatcher.heard_from(self):
            self._take(item.message)

    def _take(self, message: types.JSONRPCMessage) -> None:
        match message:
            case types.JSONRPCResponse(id=name, result=result) if _is_of(name, self._name):
                self.outcome = result
            case types.JSONRPCError(id=name, error=error) if name is None or _is_of(name, self._name):
                self.outcome = error
            case types.JSONRPCNotification() as notice:
                self._dispatcher.told(notice, self._name, self._progress)
            case types.JSONRPCRequest() as request:
                self._dispatcher.refuse(request)


class _Spawning:
    """In place of the SDK's queue of one extension's notifications, which has a task that waits for them."""

    def __init__(self, dispatcher: StatelessDispatcher, binding: NotificationBinding[Any]) -> None:
        self._dispatcher = dispatcher
        self._binding = binding

    def send_nowait(self, params: BaseModel) -> None:
        self._dispatcher.spawn(self._tell(params))

    async def _tell(self, params: BaseModel) -> None:
        await self._binding.handler(params)


async def _contained(work: Coroutine[Any, Any, None]) -> None:
    try:
        await work
    except Exception:
        LOGGER.exception("A server's message could not be passed on")


async def _reported(progress: ProgressFnT, said: Mapping[str, Any]) -> None:
    done, total, message = said.get("progress"), said.get("total"), said.get("message")
    if isinstance(done, int | float) and not isinstance(done, bool):
        whole = float(total) if isinstance(total, int | float) else None
        await progress(float(done), whole, message if isinstance(message, str) else None)


def _is_of(said: object, name: types.RequestId) -> bool:
    """Whether a message names this request."""
    known = isinstance(said, int | str) and not isinstance(said, bool)
    return known and coerce_request_id(cast(types.RequestId, said)) == coerce_request_id(name)


def _deadline(options: CallOptions) -> float:
    seconds = options.get("timeout")
    return float("inf") if seconds is None else anyio.current_time() + seconds
