"""A board for each user, while some servers are connected for each user alone."""

from __future__ import annotations

import asyncio
import math
from collections import OrderedDict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import Context
from dataclasses import dataclass
from typing import Protocol

import mcp_types as types

from pegboard.compose import Parts
from pegboard.errors import PegboardError
from pegboard.gateways.lasting_work import kept_up
from pegboard.gateways.mcp.gateway.gateway import Gateway, all_hear
from pegboard.gateways.mcp.trust.server_approvals import ServerApprovals
from pegboard.gateways.mcp.trust.user_approvals import ApprovedTools, UserApprovals, UserPins
from pegboard.model import ServerName
from pegboard.settings import Settings
from pegboard.shared_indexes import SharedIndexes
from pegboard.trust.switches import Switches
from pegboard.upstreams import Fleet
from pegboard.upstreams.extension_requests import AnyNotification
from pegboard.upstreams.user_servers import UserServers

LOOK_SECONDS = 30.0
"""Seconds between two looks for idle users, at most."""
LOOKS_PER_IDLE = 4


class TooManyUsers(PegboardError):  # noqa: N818
    """Every place is taken by a user whose requests are in progress."""

    code = "too_many_users"
    http_status = 503

    def __init__(self, most: int) -> None:
        super().__init__(f"{most} users are connected, and none of them is idle.", remedy="Try again later.")


class NewGateway(Protocol):
    def __call__(self, toolset: str, servers: UserServers, approvals: ApprovedTools, user: str) -> Gateway:
        """Raises NoToolset."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class UserEndpoint:
    """``is_needed`` says whether something would be lost with it: sessions of the handshake era."""

    close: Callable[[], None]
    is_needed: Callable[[], bool]


class UserBoard:
    """What one user sees: the shared servers, the user's own connections, and a gateway for each toolset.

    ``requests`` is how many of the user's requests are in progress; ``endpoints`` are where they arrive, by toolset.
    """

    def __init__(
        self,
        user: str,
        fleet: Fleet,
        parts: Parts,
        shared: ServerApprovals,
        switches: Switches,
        settings: Settings,
        indexes: SharedIndexes,
    ) -> None:
        self.user = user
        self.gateways: dict[str, Gateway] = {}
        self.requests = 0
        self.endpoints: dict[str, UserEndpoint] = {}
        self._clock = parts.clock
        self._indexes = indexes
        self._last_used = parts.clock.monotonic()

        def is_own(server: str) -> bool:
            return self.servers.is_own(server)

        pins = UserPins(parts.pins, user, is_own)
        self._own = ServerApprovals(
            pins,
            settings.pin_policy,
            settings.scan,
            contents=settings.content_pin_policy,
            events=parts.events,
            clock=parts.clock,
            changed=self.renew,
            exempt=lambda tool: self.servers.is_placeholder(tool),
            switches=switches,
            pinned_as=pins.key,
        )
        self.approvals = UserApprovals(shared, self._own, is_own)
        self.servers = UserServers(
            fleet,
            user,
            idle_stop=settings.users.idle,
            admit=self._own.admit,
            on_change=self._on_change,
            on_news=self._on_news,
        )
        approving = kept_up(self._own.run, parts.clock, "Definitions that a user's servers list could not be recorded")
        self._task = asyncio.create_task(approving, context=Context())  # that of the request has its token

    @property
    def idle_for(self) -> float:
        """Seconds since the last request; 0 while one is in progress."""
        return 0.0 if self.requests else self._clock.monotonic() - self._last_used

    @contextmanager
    def in_use(self) -> Iterator[None]:
        self.requests += 1
        try:
            yield
        finally:
            self.requests -= 1
            self.touch()

    def touch(self) -> None:
        self._last_used = self._clock.monotonic()

    def follow(self, settings: Settings) -> None:
        """Use these settings, and the fleet's servers, from now on."""
        self._own.adopt(settings.pin_policy, settings.scan, settings.content_pin_policy)
        self.servers.follow()
        self.renew()

    def renew(self) -> None:
        """The tools may have changed."""
        self.servers.tell()
        for gateway in self.gateways.values():
            gateway.renew()

    def review(self) -> None:
        """Something may have been approved."""
        self._own.wake()

    async def rest(self, seconds: float) -> None:
        """End what is idle. Without a request for so many seconds, that is all that the next one makes anew."""
        resting = self.idle_for >= seconds
        await self.servers.stop_idle(rest=seconds if resting else math.inf)
        for toolset, endpoint in list(self.endpoints.items()):
            if resting and not endpoint.is_needed():
                self.endpoints.pop(toolset).close()

    def close(self) -> None:
        for endpoint in self.endpoints.values():
            endpoint.close()
        self._task.cancel()
        self.servers.close()
        for gateway in self.gateways.values():
            gateway.close()

    async def _on_change(self) -> None:
        await self._own.see(self._indexes.listed(self.servers.listed()))
        self.renew()

    async def _on_news(self, server: ServerName, message: types.ServerNotification | AnyNotification) -> None:
        await all_hear(list(self.gateways.values()), server, message)


class UserBoards:
    """The boards of the users who are here, made with their first requests."""

    def __init__(
        self,
        fleet: Fleet,
        parts: Parts,
        shared: ServerApprovals,
        switches: Switches,
        settings: Callable[[], Settings],
        new_gateway: NewGateway,
        forget: Callable[[str], None],
        indexes: SharedIndexes,
    ) -> None:
        """``forget`` is called with a user who has left."""
        self._indexes = indexes
        self._fleet = fleet
        self._parts = parts
        self._shared = shared
        self._switches = switches
        self._settings = settings
        self._new_gateway = new_gateway
        self._forget = forget
        self._boards: OrderedDict[str, UserBoard] = OrderedDict()

    def board(self, user: str) -> UserBoard:
        """Raises TooManyUsers."""
        if user not in self._boards:
            settings = self._settings()
            self._make_room(settings.users.most)
            self._boards[user] = UserBoard(
                user, self._fleet, self._parts, self._shared, self._switches, settings, self._indexes
            )
        self._boards.move_to_end(user)
        self._boards[user].touch()
        return self._boards[user]

    def gateway(self, user: str, toolset: str) -> Gateway:
        """Raises TooManyUsers, NoToolset."""
        board = self.board(user)
        if toolset not in board.gateways:
            board.gateways[toolset] = self._new_gateway(toolset, board.servers, board.approvals, user)
        return board.gateways[toolset]

    def gateways(self, user: str) -> dict[str, Gateway]:
        """Those that the user has now, by toolset."""
        return self._boards[user].gateways if user in self._boards else {}

    def every_gateway(self) -> list[tuple[str, str, Gateway]]:
        """With the user and the toolset of each."""
        return [
            (user, name, gateway) for user, board in self._boards.items() for name, gateway in board.gateways.items()
        ]

    def __len__(self) -> int:
        return len(self._boards)

    def renew(self) -> None:
        """The tools of shared servers may have changed."""
        for board in self._boards.values():
            board.renew()

    def review(self) -> None:
        """Something may have been approved."""
        for board in self._boards.values():
            board.review()

    def follow(self, settings: Settings) -> None:
        """Use these settings from now on. Without a server that is connected by user, no user has a board."""
        if not settings.has_users:
            self.close()
        for board in self._boards.values():
            board.follow(settings)

    async def run(self) -> None:
        """End idle users' connections, and forget users without requests, until cancelled."""
        while True:
            users = self._settings().users
            await asyncio.sleep(min(min(users.idle, users.rest) / LOOKS_PER_IDLE, LOOK_SECONDS))
            await self.end_idle()

    async def end_idle(self) -> None:
        users = self._settings().users
        for user, board in list(self._boards.items()):
            if board.idle_for >= users.idle:
                self._end(user)
            else:
                await board.rest(users.rest)

    def close(self) -> None:
        for user in list(self._boards):
            self._end(user)

    def _make_room(self, most: int) -> None:
        while len(self._boards) >= most:
            free = next((user for user, board in self._boards.items() if not board.requests), None)
            if free is None:
                raise TooManyUsers(most)
            self._end(free)

    def _end(self, user: str) -> None:
        self._boards.pop(user).close()
        self._forget(user)
