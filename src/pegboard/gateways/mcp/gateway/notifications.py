"""What clients are notified of: changed lists, at once and then at most once per window (M18), and servers' logs."""

from __future__ import annotations

import asyncio
import logging
from collections import OrderedDict
from collections.abc import Callable, Hashable

import anyio
import mcp_types as types
from mcp.server.subscriptions import InMemorySubscriptionBus, ListenHandler, ServerEvent, ToolsListChanged

from pegboard.cached_property import cached_property
from pegboard.gateways.mcp.gateway.caller import Notify
from pegboard.gateways.mcp.gateway.fleet_protocol import Servers

LOGGER = logging.getLogger(__name__)
WINDOW = 0.1
"""Seconds during which further changes of a session are merged into one notification."""
PATIENCE = 2.0
"""Seconds that a client has to take a notification: a client that does not read delays nobody."""
MOST_CHANNELS = 10_000
MOST_SESSIONS = 10_000


async def sent(notify: Notify | None) -> None:
    """Notify a client that has `PATIENCE` to take it. That it is gone, or does not read, fails nothing."""
    if notify is None:
        return
    try:
        with anyio.move_on_after(PATIENCE):
            await notify()
    except Exception:
        LOGGER.debug("A client could not be notified: it is gone", exc_info=True)


class MergedNotices:
    """Notifications of which clients need the last alone: those that come while one of their key waits to be taken are
    sent as one."""

    def __init__(self) -> None:
        self._again: dict[Hashable, bool] = {}
        """By what is being sent: whether it is to be sent again."""

    async def send(self, key: Hashable, notify: Notify) -> None:
        under_way = key in self._again
        self._again[key] = True
        if under_way:
            return
        try:
            while self._again[key]:
                self._again[key] = False
                await sent(notify)
        finally:
            del self._again[key]


class Announcer:
    """Notifies sessions and streams of changed lists.

    Each session of the handshake era has its own channel; streams of `subscriptions/listen` use ``bus``.
    """

    def __init__(
        self,
        event: ServerEvent = ToolsListChanged(),  # noqa: B008 - frozen
        bus: InMemorySubscriptionBus | None = None,
        window: float = WINDOW,
    ) -> None:
        self.bus = InMemorySubscriptionBus() if bus is None else bus
        self._event = event
        self._window = window
        self._channels: dict[str, Notify] = {}
        self._resting: dict[str, asyncio.Task[None]] = {}
        self._again: dict[str, None] = {}  # a third of an empty set: each user has three

    @cached_property
    def listen(self) -> ListenHandler:
        """Serves streams of `subscriptions/listen`."""
        return ListenHandler(self.bus)

    def connect(self, session: str, notify: Notify) -> None:
        """Register how to notify a session outside its requests."""
        self._channels.pop(session, None)
        self._channels[session] = notify
        while len(self._channels) > MOST_CHANNELS:
            del self._channels[next(iter(self._channels))]

    def disconnect(self, session: str) -> None:
        self._channels.pop(session, None)

    async def tell(self, session: str, notify: Notify | None = None) -> bool:
        """Notify this session now, or once more at the end of the window. Returns whether a notification was sent now.

        ``notify`` sends on the stream of a request in progress, so that the notification arrives before its answer.
        """
        if session in self._resting:
            self._again[session] = None
            return False
        self._resting[session] = asyncio.create_task(self._rest(session))
        await sent(notify or self._channels.get(session))
        return True

    async def tell_all(self, concerned: Callable[[str], bool] = lambda session: True) -> None:
        """The board changed: notify all streams, and the sessions that are concerned."""
        await self.bus.publish(self._event)
        await asyncio.gather(*(self.tell(session) for session in list(self._channels) if concerned(session)))

    def close(self) -> None:
        for task in self._resting.values():
            task.cancel()

    async def _rest(self, session: str) -> None:
        try:
            await asyncio.sleep(self._window)
            while session in self._again:
                del self._again[session]
                await sent(self._channels.get(session))
                await asyncio.sleep(self._window)
        finally:
            self._resting.pop(session, None)
            self._again.pop(session, None)


class LogLevels:
    """Log levels by session: each session hears of its servers from the level on that it asked for."""

    def __init__(self, servers: Servers) -> None:
        self._servers = servers
        self._of: OrderedDict[str, types.LoggingLevel] = OrderedDict()

    def of(self, session: str | None) -> types.LoggingLevel | None:
        return None if session is None else self._of.get(session)

    async def set(self, session: str | None, level: types.LoggingLevel) -> None:
        if session is not None:
            self._of[session] = level
            self._of.move_to_end(session)
            while len(self._of) > MOST_SESSIONS:
                self._of.popitem(last=False)
        await self._servers.set_level(session or "", level)

    def forget(self, session: str) -> None:
        self._of.pop(session, None)
