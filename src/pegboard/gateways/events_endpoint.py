"""The events of a gateway as they happen, for `pegboard logs` and `pegboard top`: server-sent events at /events.

Those who may look at the dashboard may follow it. The latest events come first. Nobody's requests wait for a reader.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections import deque
from collections.abc import AsyncIterator, Callable, Mapping
from itertools import islice
from typing import Any

from mcp.server.transport_security import TransportSecuritySettings
from starlette.requests import Request
from starlette.responses import JSONResponse, StreamingResponse
from starlette.types import Receive, Scope, Send

from pegboard.errors import ConfigError, PegboardError
from pegboard.events import Event, ModelRequestServed
from pegboard.gateways.dashboard.dashboard_access import DashboardAccess
from pegboard.gateways.mcp.gateway.host import Host

PATH = "/events"
RECENT = 500
"""Events that are kept for those who come later."""
MOST_BEHIND = 5_000
"""Events that a reader may be behind; it is then told how many it missed."""
AT_ONCE = 100
"""Events that are written before others have their turn: the event loop is never held for long."""
MOST_READERS = 20
EVERY = 0.2
ALIVE = 15.0
"""Seconds between two signs of life, at which the rights of a reader are checked again."""
MOST_SCORES = 30
SO_FAR = ": that is all so far\n\n"
"""The comment after the latest events, before those that happen next."""


class EventFeed:
    """An EventSink that keeps the latest events, and hands all of them to its readers. Safe from any thread."""

    def __init__(self) -> None:
        self._recent: deque[Event] = deque(maxlen=RECENT)
        self._readers: set[EventReader] = set()

    def emit(self, event: Event) -> None:
        self._recent.append(event)
        for reader in tuple(self._readers):
            reader.put(event)

    def reader(self) -> EventReader:
        """A reader that begins with the latest events; call its `close`."""
        made = EventReader(self._readers.discard)
        self._readers.add(made)
        for event in tuple(self._recent):
            made.put(event)
        return made

    @property
    def readers(self) -> int:
        return len(self._readers)


class EventReader:
    def __init__(self, gone: Callable[[EventReader], None]) -> None:
        self._waiting: deque[Event] = deque()
        self._gone = gone
        self._missed = 0

    def put(self, event: Event) -> None:
        if len(self._waiting) < MOST_BEHIND:
            self._waiting.append(event)
        else:
            self._missed += 1

    def taken(self) -> tuple[list[Event], int]:
        """The events that wait, and the number of those that were missed before the next one."""
        missed, self._missed = self._missed, 0
        return [self._waiting.popleft() for _ in range(len(self._waiting))], missed

    def close(self) -> None:
        self._gone(self)


class EventFeedApp:
    """Serves `PATH`. ``ends`` says whether the server is about to end."""

    def __init__(
        self, feed: EventFeed, host: Host, security: TransportSecuritySettings, ends: Callable[[], bool]
    ) -> None:
        self._feed = feed
        self._host = host
        self._access = DashboardAccess(host, security)
        self._ends = ends

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        request = Request(scope, receive)
        try:
            await self._access.check_origin(request)
            await self._access.viewer(request)
            if request.method != "GET" or self._feed.readers >= MOST_READERS:
                raise ConfigError(
                    "Events are read with GET, by a few readers at once.",
                    remedy="End another `pegboard logs` or `top`.",
                )
        except PegboardError as error:
            await JSONResponse(error.payload(), error.http_status)(scope, receive, send)
            return
        lines = self._lines(request)
        await StreamingResponse(lines, media_type="text/event-stream", headers={"cache-control": "no-store"})(
            scope, receive, send
        )

    async def _lines(self, request: Request) -> AsyncIterator[str]:
        reader, checked, said_all = self._feed.reader(), time.monotonic(), False
        try:
            yield _message({"event": "Servers", "servers": self._servers()})
            while not self._ends():
                if time.monotonic() - checked >= ALIVE:
                    await self._access.viewer(request)
                    checked = time.monotonic()
                    yield ": alive\n\n"
                events, missed = reader.taken()
                if missed:
                    yield _message({"event": "Missed", "events": missed})
                for first in range(0, len(events), AT_ONCE):
                    yield "".join(_message(said(event)) for event in events[first : first + AT_ONCE])
                    await asyncio.sleep(0)
                if not said_all:
                    yield SO_FAR
                said_all = True
                await asyncio.sleep(EVERY)
        except PegboardError:  # its token has ended
            return
        finally:
            reader.close()

    def _servers(self) -> dict[str, str]:
        return {status.name: status.state for status in self._host.fleet.status()}


def said(event: Event) -> dict[str, Any]:
    """The event as it is shown, with the best candidates of a decision alone. Why a request to a model failed may quote
    it: only the code is shown."""
    found = event.as_dict()
    if isinstance(event, ModelRequestServed) and event.failure:
        del found["reason"]
    if isinstance(found.get("scores"), Mapping):
        found["scores"] = dict(islice(found["scores"].items(), MOST_SCORES))
        found["candidates"] = found["candidates"][:MOST_SCORES]
    return found


def _message(value: Mapping[str, Any]) -> str:
    return f"data: {json.dumps(value, default=str)}\n\n"
