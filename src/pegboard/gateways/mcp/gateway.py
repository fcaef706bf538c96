"""The MCP gateway's behaviour, without any wire: what is listed, what a call is of, the life of a session."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any

from pegboard.board import Board
from pegboard.errors import ArgumentsInvalid, PegboardError
from pegboard.events import ToolsListed
from pegboard.gateways.mcp import exposure, meta_tools, sessions
from pegboard.gateways.mcp.announcer import Announcer
from pegboard.gateways.mcp.caller import Caller, Exchange
from pegboard.gateways.mcp.calls import Calls
from pegboard.gateways.mcp.clients import ClientKind, client_kind
from pegboard.gateways.mcp.content import Contents
from pegboard.gateways.mcp.desk import Desk
from pegboard.gateways.mcp.ledger import Ledger
from pegboard.gateways.mcp.levels import Levels
from pegboard.gateways.mcp.library import Library
from pegboard.gateways.mcp.meta_calls import MetaCalls
from pegboard.gateways.mcp.rounds import Rounds
from pegboard.gateways.mcp.servers import Servers
from pegboard.gateways.mcp.sessions import SessionBook
from pegboard.gateways.mcp.toolsets import Toolset
from pegboard.gateways.mcp.trust import Trust
from pegboard.gateways.mcp.view import View
from pegboard.model import Fingerprint, JsonObject, Outcome
from pegboard.routing import check_arguments
from pegboard.seams import Clock, EventSink
from pegboard.settings import Settings
from pegboard.stores import MemorySessions, MemorySpend
from pegboard.upstreams import Upstream

Result = dict[str, Any]

MOST_REMEMBERED = 10_000
"""Sessions of which it is known what they listed last."""

ALONE = Exchange(caller=Caller(session="alone"))
"""The one client of a gateway that has no other."""


class Gateway:
    """One board before many servers. Results of servers are relayed untouched (M7)."""

    def __init__(
        self,
        settings: Settings,
        board: Board,
        fleet: Servers,
        *,
        events: EventSink,
        clock: Clock,
        book: SessionBook | None = None,
        observe: Callable[[Outcome], None] = lambda outcome: None,
        toolset: Toolset | None = None,
        ledger: Ledger | None = None,
        trust: Trust | None = None,
        upstreams: Callable[[], Sequence[Upstream]] = tuple,
    ) -> None:
        self.announcer = Announcer()
        self.rounds = Rounds()
        self.levels = Levels(upstreams)
        self.view = View(settings, board, fleet, clock=clock, toolset=toolset, trust=trust, changed=self._board_changed)
        self.book = SessionBook(MemorySessions(clock)) if book is None else book
        self._desk = Desk(settings, self.view, self.book, toolset)
        self._contents = Contents(settings.scan, events=events, clock=clock)
        self.library = Library(upstreams, self.announcer.bus, lambda: self._desk.servers, self._contents)
        self._recognize_clients(settings)
        self._last_listed: OrderedDict[str, Fingerprint] = OrderedDict()
        self.fleet = fleet
        ledger = Ledger(MemorySpend(clock), settings.spend, clock) if ledger is None else ledger
        self._calls = Calls(
            fleet, self.book, ledger, events=events, clock=clock, observe=observe, contents=self._contents
        )
        self._meta = MetaCalls(self._desk, self._calls, fleet, self.announcer, events=events, clock=clock)
        self._events, self._clock = events, clock

    def close(self) -> None:
        self.view.close()
        self.announcer.close()
        self.rounds.close()
        self.library.close()

    async def introduction(self, caller: Caller = ALONE.caller) -> str:
        """The instructions that a client gets when it begins. Servers have a moment to start, as for a listing."""
        await self.view.started()
        return self._desk.introduction(caller)

    async def list_tools(self, caller: Caller = ALONE.caller) -> list[JsonObject]:
        """The definitions a client is listed."""
        await self.view.started()
        session = await self.book.update(caller.session, sessions.listed)
        desk, board = self._desk, self._desk.board
        if caller.session is not None:
            self._remember_listing(caller.session, board.catalog.fingerprint)
        turn, room = desk.turn("", session, caller), desk.room(caller)
        chosen, permitted = desk.exposure(caller, session), board.permitted(turn)
        listed = exposure.listing(
            board.catalog,
            desk.names(caller),
            exposure=chosen,
            pool=board.pool(turn),
            allowed=permitted,
            always=board.pinned,
            enabled=session.enabled[-room:] if room else (),
            most=caller.kind.most_tools,
            always_load=caller.kind.always_load,
        )
        whole = exposure.tokens_of(board.catalog, permitted)
        sent = whole if len(listed) == len(permitted) else exposure.tokens_listed(board.catalog, listed)
        self._events.emit(
            ToolsListed(
                at=self._clock.time(),
                exposure=chosen,
                tools=len(permitted),
                listed=len(listed),
                tokens_before=whole,
                tokens_after=sent,
            )
        )
        return listed

    async def call(self, name: str, arguments: JsonObject, exchange: Exchange = ALONE) -> Result:
        """A meta-tool, or any tool of the board by its name, listed or not: a hidden tool is not a forbidden one.

        Our own errors come back as results with ``isError`` (M8); MCPError from a server is raised as it came.
        """
        try:
            self.view.refresh()
            if name in self._meta:
                return await self._meta.answer(name, arguments, exchange)
            session, tool = await self._desk.resolve(name, exchange.caller)
            definition = self._desk.board.catalog[tool]
            if not self._desk.is_listed(tool, exchange.caller, session):
                await self._calls.check(definition, arguments)
            return await self._calls.relay(definition, self._desk.filled_in(tool, arguments), exchange)
        except PegboardError as error:
            return self._calls.rejected(name, error)

    def knows(self, name: str, caller: Caller) -> bool:
        """Whether it is the name of a meta-tool, or of a tool of the board."""
        return name in self._meta or self._desk.names(caller).resolve(name) is not None

    async def accepts(self, name: str, arguments: JsonObject, caller: Caller) -> bool:
        """Whether this is a call of a tool of the board, by its name or by a meta-tool, that fits its schema."""
        if name in (meta_tools.INVOKE, meta_tools.EXECUTE):
            name, arguments = str(arguments.get("name")), arguments.get("arguments") or {}
        tool = None if name in self._meta else self._desk.names(caller).resolve(name)
        if tool is None or tool not in self._desk.board.catalog:
            return False
        try:
            await check_arguments(self._desk.board.catalog[tool], arguments)
        except ArgumentsInvalid:
            return False
        return True

    def adopt(self, settings: Settings, board: Board, toolset: Toolset | None = None) -> None:
        """Serve by another configuration from now on; sessions go on."""
        self._recognize_clients(settings)
        self._desk.follow(settings, toolset)
        self._contents.policy = settings.scan
        self.view.adopt(settings, board, toolset)

    def _recognize_clients(self, settings: Settings) -> None:
        """By what these settings say of them."""
        self._kinds = lru_cache(maxsize=256)(lambda name, title: client_kind(name, title, settings.clients))

    async def end_session(self, session: str) -> None:
        """Its client has ended it."""
        for news in (self.announcer, self.library.prompts_news, self.library.resources_news):
            news.disconnect(session)
        self.levels.forget(session)
        await self.library.forget(session)
        self._meta.forget(session)
        self._calls.forget(session)
        self.fleet.forget(session)
        await self.book.forget(session)

    def kind(self, name: str, title: str | None) -> ClientKind:
        """What is known of a client that calls itself so."""
        return self._kinds(name, title)

    def input_schema(self, name: str) -> JsonObject | None:
        """The schema of a listed name, for headers that mirror arguments (MCP 2026-07-28, `Mcp-Param-*`)."""
        tool, catalog = self._desk.names(ALONE.caller).resolve(name), self._desk.board.catalog
        return None if tool is None or tool not in catalog else catalog[tool].input_schema

    def continue_session(self, session: str) -> None:
        """It began in an earlier process: what its client was listed there is not known, and is older."""
        self._remember_listing(session, Fingerprint(""))

    def _remember_listing(self, session: str, listed: Fingerprint) -> None:
        self._last_listed[session] = listed
        self._last_listed.move_to_end(session)
        while len(self._last_listed) > MOST_REMEMBERED:
            self._last_listed.popitem(last=False)

    async def _board_changed(self) -> None:
        """Whoever has an older list is told; who has none, or this one already, is not."""
        now = self._desk.board.catalog.fingerprint
        await self.announcer.tell_all(lambda session: self._last_listed.get(session, now) != now)
