"""The MCP gateway's behaviour, without any wire: what is listed, what is found, what is called."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from typing import Any

import mcp_types as types
from mcp import MCPError

from pegboard.board import Board
from pegboard.catalog import WireNames
from pegboard.errors import ArgumentsInvalid, PegboardError, ToolNotAvailable
from pegboard.events import CallRejected
from pegboard.gateways.mcp import exposure, meta_tools, sessions
from pegboard.gateways.mcp.announcer import Announcer
from pegboard.gateways.mcp.answers import about, check_meta_arguments, entry, has_hints, json_result, not_ready
from pegboard.gateways.mcp.caller import Caller, Exchange
from pegboard.gateways.mcp.calls import Calls
from pegboard.gateways.mcp.clients import ClientKind, client_kind
from pegboard.gateways.mcp.ledger import Ledger
from pegboard.gateways.mcp.levels import Levels
from pegboard.gateways.mcp.library import Library
from pegboard.gateways.mcp.offers import LastOffers, failed, shown, with_next
from pegboard.gateways.mcp.rounds import Rounds
from pegboard.gateways.mcp.servers import Servers
from pegboard.gateways.mcp.sessions import SessionBook
from pegboard.gateways.mcp.toolsets import Toolset
from pegboard.gateways.mcp.trust import Trust
from pegboard.gateways.mcp.view import View
from pegboard.model import AgentState, Fingerprint, JsonObject, Message, Outcome, Part, Session, Tool, ToolId, Turn
from pegboard.routing import check_arguments
from pegboard.routing.economics import Subtask
from pegboard.seams import Clock, EventSink, Filter
from pegboard.settings import Exposure, Settings
from pegboard.stores import MemorySessions, MemorySpend
from pegboard.upstreams import Upstream

Result = dict[str, Any]

MOST_REMEMBERED = 10_000
"""Sessions of which it is known what they listed last."""

NOTHING_TO_JUDGE = "No call of this tool in this session succeeded since the last report."

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
        self.library = Library(upstreams, self.announcer.bus, self._servers)
        self.levels = Levels(upstreams)
        self.view = View(settings, board, fleet, clock=clock, toolset=toolset, trust=trust, changed=self._board_changed)
        self._last_listed: OrderedDict[str, Fingerprint] = OrderedDict()
        self.book = SessionBook(MemorySessions(clock)) if book is None else book
        self._follow(settings, toolset)
        self._fleet = fleet
        self._events = events
        self._clock = clock
        ledger = Ledger(MemorySpend(clock), settings.spend, clock) if ledger is None else ledger
        self._calls = Calls(fleet, self.book, ledger, events=events, clock=clock, observe=observe)
        self._offered = LastOffers()
        self._meta: Mapping[str, Callable[[JsonObject, Exchange], Awaitable[Result]]] = {
            meta_tools.LIST_CATEGORIES: self._list_categories,
            meta_tools.SEARCH: self._search,
            meta_tools.DESCRIBE: self._describe,
            meta_tools.INVOKE: self._invoke,
            meta_tools.ROUTE: self._route,
            meta_tools.EXECUTE: self._execute,
            meta_tools.REPORT: self._report,
        }

    def close(self) -> None:
        self.view.close()
        self.announcer.close()
        self.rounds.close()
        self.library.close()

    async def list_tools(self, caller: Caller = ALONE.caller) -> list[JsonObject]:
        """The definitions a client is listed."""
        await self.view.started()
        session = await self.book.update(caller.session, sessions.listed)
        if caller.session is not None:
            self._remember_listing(caller.session, self._board.catalog.fingerprint)
        turn = self._turn("", session, caller)
        allowed = self._board.permitted(turn)
        return exposure.listing(
            self._board.catalog,
            self._names(caller),
            exposure=self._exposure(caller, session),
            pool=self._board.pool(turn),
            allowed=allowed,
            always=self._board.pinned,
            enabled=session.enabled[-self._room(caller) :] if self._room(caller) else (),
            most=caller.kind.most_tools,
        )

    async def call(self, name: str, arguments: JsonObject, exchange: Exchange = ALONE) -> Result:
        """A meta-tool, or any tool of the board by its name, listed or not: a hidden tool is not a forbidden one.

        Our own errors come back as results with ``isError`` (M8); MCPError from a server is raised as it came.
        """
        try:
            self.view.refresh()
            if name in self._meta:
                check_meta_arguments(name, arguments)
                return await self._meta[name](arguments, exchange)
            session, tool = await self._resolve(name, exchange.caller)
            if not self._is_listed(tool, exchange.caller, session):
                self._calls.check(self._board.catalog[tool], arguments)
            return await self._relay(tool, arguments, exchange)
        except PegboardError as error:
            return self._rejected(name, error)

    def knows(self, name: str, caller: Caller) -> bool:
        """Whether it is the name of a meta-tool, or of a tool of the board."""
        return name in self._meta or self._names(caller).resolve(name) is not None

    def accepts(self, name: str, arguments: JsonObject, caller: Caller) -> bool:
        """Whether this is a call of a tool of the board, by its name or by a meta-tool, that fits its schema."""
        if name in (meta_tools.INVOKE, meta_tools.EXECUTE):
            name, arguments = str(arguments.get("name")), arguments.get("arguments") or {}
        tool = None if name in self._meta else self._names(caller).resolve(name)
        if tool is None or tool not in self._board.catalog:
            return False
        try:
            check_arguments(self._board.catalog[tool], arguments)
        except ArgumentsInvalid:
            return False
        return True

    def adopt(self, settings: Settings, board: Board, toolset: Toolset | None = None) -> None:
        """Serve by another configuration from now on; sessions go on."""
        self._follow(settings, toolset)
        self.view.adopt(settings, board, toolset)

    def _follow(self, settings: Settings, toolset: Toolset | None) -> None:
        self._settings = settings
        self._toolset = toolset
        self._kinds = lru_cache(maxsize=256)(lambda name, title: client_kind(name, title, settings.clients))

    async def end_session(self, session: str) -> None:
        """Its client has ended it."""
        for news in (self.announcer, self.library.prompts_news, self.library.resources_news):
            news.disconnect(session)
        self.levels.forget(session)
        await self.library.forget(session)
        self._offered.forget(session)
        self._calls.forget(session)
        self._fleet.forget(session)
        await self.book.forget(session)

    def kind(self, name: str, title: str | None) -> ClientKind:
        """What is known of a client that calls itself so."""
        return self._kinds(name, title)

    def input_schema(self, name: str) -> JsonObject | None:
        """The schema of a listed name, for headers that mirror arguments (MCP 2026-07-28, `Mcp-Param-*`)."""
        tool = self._names(ALONE.caller).resolve(name)
        return None if tool is None or tool not in self._board.catalog else self._board.catalog[tool].input_schema

    def _servers(self) -> Collection[str] | None:
        """Whose resources and prompts there are: a toolset's are those of its servers; None is all."""
        return None if self._toolset is None else self.view.catalog.servers.keys()

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
        now = self._board.catalog.fingerprint
        await self.announcer.tell_all(lambda session: self._last_listed.get(session, now) != now)

    async def _search(self, arguments: JsonObject, exchange: Exchange) -> Result:
        server = arguments.get("server")
        await self.view.started(some=server is None or bool(self._board.catalog.of_server(server)))
        caller = exchange.caller
        session = await self.book.get(caller.session)
        decision = await self._board.route(self._turn(arguments["query"], session, caller), self._filter(arguments))
        limit = arguments.get("limit", meta_tools.DEFAULT_LIMIT)
        names = self._names(caller)
        best = sorted(decision.candidates, key=lambda candidate: -candidate.score)
        found = [candidate.tool for candidate in best if candidate.tool in names.of][:limit]
        tools = [entry(self._board.catalog[tool], names.of[tool]) for tool in found]
        await self._enable(found, session, exchange)
        return json_result({"tools": tools} | self._not_ready(caller))

    async def _list_categories(self, arguments: JsonObject, exchange: Exchange) -> Result:
        await self.view.started()
        caller = exchange.caller
        session = await self.book.get(caller.session)
        allowed = self._board.allowed(self._turn("", session, caller))
        groups: dict[str, list[Tool]] = {}
        for tool in self._board.catalog.tools:
            if tool.id in allowed:
                groups.setdefault(self.view.categories[tool.id], []).append(tool)
        wanted = arguments.get("category")
        if wanted is None:
            servers = self._board.catalog.servers
            categories = [about(name, of, servers.get(name)) for name, of in groups.items()]
            return json_result({"categories": categories} | self._not_ready(caller))
        if wanted not in groups:
            raise ToolNotAvailable(wanted, list(groups), remedy="Use one of the categories that are available.")
        names = self._names(caller)
        await self._enable([tool.id for tool in groups[wanted]], session, exchange)
        return json_result({"category": wanted, "tools": [names.of[tool.id] for tool in groups[wanted]]})

    async def _describe(self, arguments: JsonObject, exchange: Exchange) -> Result:
        described: list[JsonObject] = []
        unknown: dict[str, list[str]] = {}
        for name in arguments["names"]:
            try:
                _, tool = await self._resolve(name, exchange.caller)
                described.append(exposure.on_the_wire(self._board.catalog[tool], self._names(exchange.caller)))
            except ToolNotAvailable as error:
                unknown[name] = list(error.available)
        return json_result({"tools": described} | ({"unknown": unknown} if unknown else {}))

    async def _route(self, arguments: JsonObject, exchange: Exchange) -> Result:
        """ROUTE (seed 001, algorithm 2), under whatever profile the board has."""
        await self.view.started(some=True)
        caller = exchange.caller
        session = await self.book.get(caller.session)
        turn = self._turn(str(Subtask(**arguments["subtask"])), session, caller)
        turn = replace(turn, max_price=arguments.get("max_price"), deadline=arguments.get("deadline"))
        offers = await self._board.offers(turn)
        self._offered.remember(caller.session, [offer.tool for offer in offers.tools])
        return json_result(shown(offers, self._board.catalog, self._names(caller)) | self._not_ready(caller))

    async def _execute(self, arguments: JsonObject, exchange: Exchange) -> Result:
        """EXECUTE-TOOL (seed 001, algorithm 1): what failed comes back as it came, with what else was offered.

        A server's protocol error becomes a result, so that the model sees it, unless the client is to act on it.
        """
        try:
            result = await self._invoke(arguments, exchange, finder=meta_tools.ROUTE)
        except PegboardError as error:
            result = self._rejected(meta_tools.EXECUTE, error)
        except MCPError as error:
            if error.error.code == types.URL_ELICITATION_REQUIRED:
                raise
            result = failed(error)
        return await self._with_others(arguments["name"], result, exchange) if result.get("isError") else result

    async def _report(self, arguments: JsonObject, exchange: Exchange) -> Result:
        """The agent's own verdict counts once for each call of its session that succeeded."""
        _, tool = await self._resolve(arguments["name"], exchange.caller, meta_tools.ROUTE)
        counted = self._calls.judge(exchange.caller.session, tool, useful=arguments["useful"])
        return json_result({"counted": counted} | ({} if counted else {"why": NOTHING_TO_JUDGE}))

    async def _with_others(self, name: str, result: Result, exchange: Exchange) -> Result:
        caller = exchange.caller
        session, names = await self.book.get(caller.session), self._names(caller)
        allowed = self._board.allowed(self._turn("", session, caller))
        called = names.resolve(name)
        others = [tool for tool in self._offered.of(caller.session) if tool != called and tool in allowed]
        return with_next(result, [names.of[tool] for tool in others if tool in names.of])

    async def _invoke(self, arguments: JsonObject, exchange: Exchange, finder: str = meta_tools.SEARCH) -> Result:
        """Rights and arguments are checked on the inner tool, by the one name that is also dispatched (M2, M3)."""
        name, inner = arguments["name"], arguments.get("arguments") or {}
        if name in meta_tools.META_TOOLS:
            raise ToolNotAvailable(name, [], remedy="Call Pegboard's own tools directly.")
        _, tool = await self._resolve(name, exchange.caller, finder)
        self._calls.check(self._board.catalog[tool], inner)
        return await self._relay(tool, inner, exchange)

    def _rejected(self, name: str, error: PegboardError) -> Result:
        self._events.emit(CallRejected(at=self._clock.time(), tool=name, reason=error.code))
        return error.to_mcp()

    async def _relay(self, tool: ToolId, arguments: JsonObject, exchange: Exchange) -> Result:
        arguments = self._toolset.arguments(tool, arguments) if self._toolset else arguments
        return await self._calls.relay(self._board.catalog[tool], arguments, exchange)

    async def _enable(self, tools: list[ToolId], session: Session, exchange: Exchange) -> None:
        """Where this client lists again when it is told, what was found joins its list (seed 002, approach D)."""
        caller = exchange.caller
        key = caller.session
        if key is None or not tools or self._exposure(caller, session) != "dynamic":
            return
        now = await self.book.update(key, sessions.enable(tools, cap=self._room(caller)))
        if set(now.enabled) != set(session.enabled) and await self.announcer.tell(key, exchange.notify):
            await self.book.update(key, sessions.noticed)

    async def _resolve(self, name: str, caller: Caller, finder: str = meta_tools.SEARCH) -> tuple[Session, ToolId]:
        """The tool of a name. One that is not known yet may belong to a server that is still starting."""
        if self._names(caller).resolve(name) is None:
            await self.view.started()
        session = await self.book.get(caller.session)
        turn = self._turn("", session, caller)
        allowed = self._board.allowed(turn)
        return session, self.view.resolve(name, allowed, self._names(caller), turn, finder=finder)

    def _is_listed(self, tool: ToolId, caller: Caller, session: Session) -> bool:
        if tool in self._board.pinned:
            return True
        chosen = self._exposure(caller, session)
        return chosen in ("eager", "native") or (chosen == "dynamic" and tool in session.enabled)

    def _exposure(self, caller: Caller, session: Session) -> Exposure:
        small, tools = self.view.is_small, len(self._board.catalog)
        return exposure.choose(caller, session, self._settings, small=small, tools=tools)

    def _room(self, caller: Caller) -> int:
        return exposure.room(caller, self._settings, len(self._board.pinned))

    def _names(self, caller: Caller) -> WireNames:
        return self.view.names(caller.kind.longest_name)

    def _filter(self, arguments: JsonObject) -> Filter | None:
        server, wanted, hints = (arguments.get(key) for key in ("server", "category", "annotations"))
        if server is None and wanted is None and not hints:
            return None
        categories = self.view.categories
        others = (
            tool.id
            for tool in self._board.catalog.tools
            if (wanted is not None and categories[tool.id] != wanted) or not has_hints(tool, hints or {})
        )
        return Filter(servers=None if server is None else frozenset({server}), excluded=frozenset(others))

    def _not_ready(self, caller: Caller) -> Result:
        holder = caller.holder
        return not_ready(each for each in self._fleet.status() if holder is None or holder.may_see(each.name))

    def _turn(self, text: str, session: Session, caller: Caller) -> Turn:
        """A turn of this session: the caller's rights, which are the process's where there are no tokens, and what has
        answered so far."""
        holder = caller.holder
        scopes = frozenset(self._settings.scopes) if holder is None else holder.scopes
        state = AgentState(auth=scopes, tool_outputs=session.answered)
        message = Message(role="user", parts=(Part(text=text),))
        only = None if holder is None else holder.only
        return Turn(messages=(message,), session=session, scopes=scopes, only=only, state=state)

    @property
    def _board(self) -> Board:
        return self.view.board
