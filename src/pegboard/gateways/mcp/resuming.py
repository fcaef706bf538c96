"""A client that lost a stream comes back for what it missed (MCP 2025-11-25, resumability)."""

from __future__ import annotations

from collections import deque

from mcp.server.streamable_http import EventCallback, EventMessage, EventStore
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from mcp_types import JSONRPCMessage

MOST_EVENTS = 64
"""Of one session. Who comes back for older ones begins anew."""


class KeptEvents(EventStore):
    """The last events of one session, in memory."""

    def __init__(self) -> None:
        self._events: deque[tuple[int, str, JSONRPCMessage | None]] = deque(maxlen=MOST_EVENTS)
        self._last = 0

    async def store_event(self, stream_id: str, message: JSONRPCMessage | None) -> str:
        self._last += 1
        self._events.append((self._last, stream_id, message))
        return str(self._last)

    async def replay_events_after(self, last_event_id: str, send_callback: EventCallback) -> str | None:
        """What came on the stream of that event after it; None where the event is not known any more."""
        known = {str(number): (number, stream) for number, stream, _ in self._events}
        if last_event_id not in known:
            return None
        last, wanted = known[last_event_id]
        for number, stream, message in list(self._events):
            if number > last and stream == wanted and message is not None:
                await send_callback(EventMessage(message, str(number)))
        return wanted


class ResumableSessions(StreamableHTTPSessionManager):
    """The SDK's sessions, each with events of its own: it would share one store, whose streams it names alike."""

    @property
    def event_store(self) -> EventStore | None:
        return KeptEvents()

    @event_store.setter
    def event_store(self, store: EventStore | None) -> None:
        """What the SDK is told here, it is told of all sessions."""
