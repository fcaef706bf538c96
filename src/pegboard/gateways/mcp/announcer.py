"""Tells clients that a list of theirs changed: at once, and then no more than a burst's worth (M18)."""

from __future__ import annotations

import asyncio
import logging
from collections import OrderedDict
from collections.abc import Callable

import anyio
from mcp.server.subscriptions import InMemorySubscriptionBus, ServerEvent, ToolsListChanged

from pegboard.gateways.mcp.caller import Notify

LOGGER = logging.getLogger(__name__)

WINDOW = 0.1
"""Seconds in which further changes of one session are one notification."""
PATIENCE = 2.0
"""Seconds that a client has to take what it is told: one that reads nothing holds nobody up."""
MOST_CHANNELS = 10_000


class Announcer:
    """Each session of the handshake era has a channel of its own; streams of `subscriptions/listen` hang on ``bus``."""

    def __init__(
        self,
        event: ServerEvent = ToolsListChanged(),  # noqa: B008 - frozen
        bus: InMemorySubscriptionBus | None = None,
        window: float = WINDOW,
    ) -> None:
        self.bus = InMemorySubscriptionBus() if bus is None else bus
        self._event = event
        self._window = window
        self._channels: OrderedDict[str, Notify] = OrderedDict()
        self._resting: dict[str, asyncio.Task[None]] = {}
        self._again: set[str] = set()

    def connect(self, session: str, notify: Notify) -> None:
        """The way to a session when it is not asking."""
        self._channels[session] = notify
        self._channels.move_to_end(session)
        while len(self._channels) > MOST_CHANNELS:
            self._channels.popitem(last=False)

    def disconnect(self, session: str) -> None:
        self._channels.pop(session, None)

    async def tell(self, session: str, notify: Notify | None = None) -> bool:
        """Tell this session: now, or once more at the end of the burst. Whether a notification went out now.

        ``notify`` is the way back of a request that is being answered, so that the news is there before the answer.
        """
        if session in self._resting:
            self._again.add(session)
            return False
        self._resting[session] = asyncio.create_task(self._rest(session))
        await self._send(notify or self._channels.get(session))
        return True

    async def tell_all(self, concerned: Callable[[str], bool] = lambda session: True) -> None:
        """The board itself changed: tell all streams, and the sessions that are concerned."""
        await self.bus.publish(self._event)
        await asyncio.gather(*(self.tell(session) for session in list(self._channels) if concerned(session)))

    def close(self) -> None:
        for task in self._resting.values():
            task.cancel()

    async def _rest(self, session: str) -> None:
        try:
            await asyncio.sleep(self._window)
            while session in self._again:
                self._again.discard(session)
                await self._send(self._channels.get(session))
                await asyncio.sleep(self._window)
        finally:
            self._resting.pop(session, None)
            self._again.discard(session)

    async def _send(self, notify: Notify | None) -> None:
        if notify is None:
            return
        try:
            with anyio.move_on_after(PATIENCE):
                await notify()
        except Exception:
            LOGGER.debug("A client could not be told: it has gone", exc_info=True)
