"""Sessions of the handshake era on HTTP, whose requests are answered in JSON if the answer is there at once.

The protocol leaves the choice between JSON and an event stream to the server (MCP 2025-11-25, transports). The SDK
always opens a stream, which takes as long as everything else that is done for a call. A stream is opened for a request
whose answer takes longer, or has messages before it; it can be resumed as before.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import anyio
import pydantic_core
from anyio.abc import TaskGroup, TaskStatus
from anyio.streams.memory import MemoryObjectReceiveStream
from mcp.server.streamable_http import (
    REQUEST_CANCELLED,
    REQUEST_STREAM_BUFFER_SIZE,
    EventCallback,
    EventMessage,
    EventStore,
    SSEEvent,
    StreamableHTTPServerTransport,
    check_accept_headers,
)
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from mcp.server.transport_security import RequestBodyLimitMiddleware
from mcp.shared.inbound import MCP_PROTOCOL_VERSION_HEADER
from mcp_types import DEFAULT_NEGOTIATED_VERSION, JSONRPCError, JSONRPCMessage, JSONRPCRequest, JSONRPCResponse
from pydantic import BaseModel, ValidationError
from sse_starlette import EventSourceResponse
from starlette.requests import Request
from starlette.types import ASGIApp, Receive, Scope, Send

from pegboard.gateways.mcp.transport.modern_requests import ModernRequests

QUICK_SECONDS = 1.0
"""Seconds within which an answer is sent as JSON."""
MOST_EVENTS = 64
"""Events kept per session. A client that asks for older ones has to start over."""
MOST_CHARACTERS = 4_000_000
"""Of the events before a session's newest."""
ENDED = (anyio.EndOfStream, anyio.ClosedResourceError)


class QuickAnswers(StreamableHTTPServerTransport):
    """The SDK's transport of one session. Invalid requests, and the first one, are left to the SDK."""

    async def _handle_post_request(self, scope: Scope, request: Request, receive: Receive, send: Send) -> None:
        message = await self._asked(request)
        if message is None or self._read_stream_writer is None:
            await super()._handle_post_request(scope, request, receive, send)
            return
        if not await self._validate_request_headers(request, send):
            return
        name = str(message.id)
        version = request.headers.get(MCP_PROTOCOL_VERSION_HEADER, DEFAULT_NEGOTIATED_VERSION)
        priming = await self._mint_priming_event(name, version)
        streams = anyio.create_memory_object_stream[EventMessage](REQUEST_STREAM_BUFFER_SIZE)
        self._request_streams[name] = streams
        await self._read_stream_writer.send(self._create_session_message(message, request, name, version))
        first = await _first(streams[1])
        if first is not None and isinstance(first.message, JSONRPCResponse | JSONRPCError):
            await self._clean_up_memory_streams(name)
            if not _is_cancelled(first.message):
                if isinstance(self._event_store, KeptEvents):
                    self._event_store.forget(name)
                await self._create_json_response(first.message)(scope, receive, send)
                return
        held_back = [priming, None if first is None else self._create_event_data(first)]
        await self._stream(name, streams[1], held_back, scope, receive, send)

    async def _asked(self, request: Request) -> JSONRPCRequest | None:
        """The request, unless the SDK has to answer it."""
        if check_accept_headers(request) != (True, True) or not self._check_content_type(request):
            return None
        try:
            message = JSONRPCRequest.model_validate(pydantic_core.from_json(await request.body()), by_name=False)
        except (ValueError, ValidationError):
            return None
        return None if message.method == "initialize" else message

    async def _stream(
        self,
        name: str,
        events: MemoryObjectReceiveStream[EventMessage],
        begun: list[SSEEvent | None],
        scope: Scope,
        receive: Receive,
        send: Send,
    ) -> None:
        """An event stream that starts with the events that were held back."""
        writer, reader = anyio.create_memory_object_stream[SSEEvent](len(begun))
        for each in begun:
            if each is not None:
                writer.send_nowait(each)
        self._sse_stream_writers[name] = writer
        sent = partial(self._run_sse_writer, name, writer, events, None)
        headers = {"Cache-Control": "no-cache, no-transform", "Mcp-Session-Id": self.mcp_session_id or ""}
        async with reader:
            await EventSourceResponse(content=reader, data_sender_callable=sent, headers=headers)(scope, receive, send)


async def _first(events: MemoryObjectReceiveStream[EventMessage]) -> EventMessage | None:
    """The first event, if it comes in time."""
    with anyio.move_on_after(QUICK_SECONDS):
        try:
            return await events.receive()
        except ENDED:
            pass
    return None


def _is_cancelled(answer: JSONRPCResponse | JSONRPCError) -> bool:
    """Whether the client has given the request up. The SDK's client fails on such an answer in JSON while it is being
    closed."""
    return isinstance(answer, JSONRPCError) and answer.error.code == REQUEST_CANCELLED


@dataclass(slots=True)
class KeptEvent:
    """``characters`` are counted when a later event is stored: most events are forgotten before."""

    stream: str
    message: JSONRPCMessage | None
    characters: int | None = None


class KeptEvents(EventStore):
    """The last events of one session, in memory, for a client that lost a stream (MCP 2025-11-25, resumability)."""

    def __init__(self) -> None:
        self._events: dict[int, KeptEvent] = {}
        self._last = 0

    async def store_event(self, stream_id: str, message: JSONRPCMessage | None) -> str:
        self._make_room()
        self._last += 1
        self._events[self._last] = KeptEvent(stream_id, message)
        return str(self._last)

    def forget(self, stream_id: str) -> None:
        """The request of this stream was answered without a stream: there is nothing to resume."""
        self._events = {number: each for number, each in self._events.items() if each.stream != stream_id}

    async def replay_events_after(self, last_event_id: str, send_callback: EventCallback) -> str | None:
        """Send the later events of that event's stream. None if the event is no longer known."""
        known = {str(number): (number, each.stream) for number, each in self._events.items()}
        if last_event_id not in known:
            return None
        last, wanted = known[last_event_id]
        for number, each in list(self._events.items()):
            if number > last and each.stream == wanted and each.message is not None:
                await send_callback(EventMessage(each.message, str(number)))
        return wanted

    def _make_room(self) -> None:
        """Forget the oldest events as long as they are too many or too long."""
        sizes: dict[int, int] = {}
        for number, each in self._events.items():
            if each.characters is None:
                each.characters = _characters(each.message)
            sizes[number] = each.characters
        all_together = sum(sizes.values())
        while self._events and (len(self._events) >= MOST_EVENTS or all_together > MOST_CHARACTERS):
            oldest = next(iter(self._events))
            all_together -= sizes[oldest]
            del self._events[oldest]


def _characters(value: Any) -> int:
    """About how long a message is as JSON."""
    if isinstance(value, BaseModel):
        value = vars(value)
    if isinstance(value, str):
        return len(value)
    if isinstance(value, Mapping):
        return sum(len(str(key)) + _characters(each) for key, each in value.items())
    if isinstance(value, list | tuple):
        return sum(map(_characters, value))
    return 1


class SessionTasks:
    """In place of the SDK's task group: tasks in a group of others', which are cancelled together."""

    def __init__(self, group: TaskGroup) -> None:
        self._group = group
        self._scopes: dict[anyio.CancelScope, None] = {}  # a third of an empty set

    async def start(self, run: Callable[..., Awaitable[None]]) -> None:
        await self._group.start(self._run, run)

    def cancel(self) -> None:
        for scope in list(self._scopes):
            scope.cancel()

    async def _run(self, run: Callable[..., Awaitable[None]], *, task_status: TaskStatus[None]) -> None:
        with anyio.CancelScope() as scope:
            self._scopes[scope] = None
            try:
                await run(task_status=task_status)
            finally:
                del self._scopes[scope]


class ResumableSessions(StreamableHTTPSessionManager):
    """The SDK's sessions, each with its own events: in one shared store its stream names would collide."""

    @property
    def event_store(self) -> EventStore | None:
        return KeptEvents()

    @event_store.setter
    def event_store(self, store: EventStore | None) -> None:
        """Ignored: the SDK would use this store for all sessions."""

    def __init__(self, *of: Any, **options: Any) -> None:
        super().__init__(*of, **options)
        self._run_lock = self._session_creation_lock = asyncio.Lock()  # type: ignore[assignment]  # the SDK's takes a kilobyte

    def begin(self, tasks: TaskGroup, lifespan: object) -> None:
        """As `run` begins, without tasks of its own: those of its sessions are in this group, until `end`. Its requests
        have this lifespan state."""
        self._lifespan_state = lifespan
        self._tasks = self._task_group = SessionTasks(tasks)  # type: ignore[assignment]

    async def beside(self, work: Callable[[], Awaitable[None]]) -> None:
        """Begin work that nobody waits for, which ends with the sessions. It must not raise."""

        async def run(*, task_status: TaskStatus[None]) -> None:
            task_status.started()
            await work()

        await self._tasks.start(run)

    def end(self) -> None:
        """End all sessions."""
        self._task_group = None
        self._server_instances.clear()
        self._session_owners.clear()
        self._tasks.cancel()

    @property
    def has_sessions(self) -> bool:
        """Whether any session is open here."""
        return bool(self._server_instances)

    def serves(self, session: str) -> bool:
        """Whether the session is open here."""
        transport = self._server_instances.get(session)
        return transport is not None and not transport.is_terminated

    def modern_requests(self) -> ASGIApp:
        """The same application while it runs, with our way of handling requests of revision 2026-07-28."""
        modern = ModernRequests(self.app, self.security_settings, self._lifespan_state, otherwise=self._handle_request)
        return RequestBodyLimitMiddleware(modern, self.max_request_body_size)

    def _admit_session(self, requestor: Any) -> StreamableHTTPServerTransport | None:
        """As the SDK admits a session, with our transport."""
        admitted = super()._admit_session(requestor)
        if admitted is None or admitted.mcp_session_id is None:
            return admitted
        ours = QuickAnswers(
            mcp_session_id=admitted.mcp_session_id,
            event_store=self.event_store,
            security_settings=self.security_settings,
            retry_interval=self.retry_interval,
            idle_timeout=self.session_idle_timeout,
        )
        self._server_instances[admitted.mcp_session_id] = ours
        return ours
