"""The MCP gateway's behaviour, independent of any transport: listings, calls, and the life of a session."""

from __future__ import annotations

import asyncio
import json
import logging
from collections import OrderedDict
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from typing import Any

import mcp_types as types

from pegboard.call_charges import CallCharges
from pegboard.caller_limits import RateLimiter
from pegboard.errors import ArgumentsInvalid, PegboardError
from pegboard.events import ToolsListed
from pegboard.gateways.mcp.gateway import session_changes
from pegboard.gateways.mcp.gateway.after_answer import AfterAnswer
from pegboard.gateways.mcp.gateway.app_tools import app_resource
from pegboard.gateways.mcp.gateway.call_audit import CallAudit, session_hash
from pegboard.gateways.mcp.gateway.call_results import CallResults
from pegboard.gateways.mcp.gateway.caller import CallContext, Caller
from pegboard.gateways.mcp.gateway.caller_view import CallerView, on_the_wire, tokens_listed, tokens_of
from pegboard.gateways.mcp.gateway.catalog_view import CatalogView
from pegboard.gateways.mcp.gateway.clients import ClientKind, client_kind
from pegboard.gateways.mcp.gateway.fleet_protocol import Servers
from pegboard.gateways.mcp.gateway.likely_tools import LikelyTools
from pegboard.gateways.mcp.gateway.meta_definitions import EXECUTE, INVOKE, META_TOOLS, SEARCH
from pegboard.gateways.mcp.gateway.meta_tools import MetaCalls
from pegboard.gateways.mcp.gateway.notifications import Announcer, LogLevels
from pegboard.gateways.mcp.gateway.search_queue import SearchQueue
from pegboard.gateways.mcp.gateway.server_finder import ServerFinder
from pegboard.gateways.mcp.gateway.session_changes import SessionBook
from pegboard.gateways.mcp.gateway.tool_calls import ToolCalls
from pegboard.gateways.mcp.gateway.toolset_view import ToolsetView
from pegboard.gateways.mcp.resources.content_search import ContentSearch
from pegboard.gateways.mcp.resources.resources import ServerResources
from pegboard.gateways.mcp.resources.skills import SkillLibrary
from pegboard.gateways.mcp.tasks.server_tasks import ServerTasks
from pegboard.gateways.mcp.tasks.task_ids import TaskIds
from pegboard.gateways.mcp.transport.client_input import PendingInputs
from pegboard.gateways.mcp.trust.content import Contents
from pegboard.gateways.mcp.trust.user_approvals import ApprovedTools
from pegboard.library.item_search import ItemSearch, item_search
from pegboard.model import Decision, Fingerprint, JsonObject, Outcome, ServerName, Session, ToolId, Turn
from pegboard.programs.runner import ProgramRunner
from pegboard.protocols import Clock, EventSink
from pegboard.results.result_shaper import ResultShaper
from pegboard.routing import check_arguments
from pegboard.routing_board import RoutingBoard
from pegboard.settings import Settings
from pegboard.stores import MemoryRates, MemoryResults, MemorySessions, MemorySpend
from pegboard.telemetry.audit_log import AuditLog
from pegboard.upstreams import NotCarriedOut, Upstream
from pegboard.upstreams.extension_requests import RELAYED, AnyNotification, extensions_of, merged_settings

LOGGER = logging.getLogger(__name__)
Result = dict[str, Any]

MOST_KINDS = 256
MOST_REMEMBERED = 10_000
"""Sessions whose last listing is remembered."""

ALONE = CallContext(caller=Caller(session="alone"))
"""The only client of a gateway that has a single client."""


def _nowhere(server: str) -> Upstream:
    """An embedded gateway has no connections to servers."""
    raise NotCarriedOut(server, f"There is no connection to server {server!r}.")


class Gateway:
    """One board for many servers. Results of servers are relayed untouched (M7). ``name`` is its own in the process."""

    def __init__(
        self,
        settings: Settings,
        board: RoutingBoard,
        fleet: Servers,
        *,
        events: EventSink,
        clock: Clock,
        name: str = "",
        book: SessionBook | None = None,
        observe: Callable[[Outcome], None] = lambda outcome: None,
        toolset: ToolsetView | None = None,
        charges: CallCharges | None = None,
        audit: AuditLog | None = None,
        rates: RateLimiter | None = None,
        approvals: ApprovedTools | None = None,
        upstreams: Callable[[], Sequence[Upstream]] = tuple,
        reach: Callable[[str], Upstream] = _nowhere,
        task_ids: TaskIds | None = None,
        results: ResultShaper | None = None,
        programs: ProgramRunner | None = None,
        finder: ServerFinder | None = None,
        items: ItemSearch | None = None,
        searches: SearchQueue | None = None,
    ) -> None:
        self.name = name
        self.announcer = Announcer()
        self.pending_inputs = PendingInputs()
        self.levels = LogLevels(fleet)
        self.view = CatalogView(
            settings, board, fleet, clock=clock, toolset=toolset, approvals=approvals, changed=self._board_changed
        )
        self.book = SessionBook(MemorySessions(clock)) if book is None else book
        shaper = results or ResultShaper(
            settings.results, MemoryResults(clock), board.catalog.counter, events=events, clock=clock
        )
        self._results = CallResults(settings, shaper)
        self._programs = programs or ProgramRunner(settings.programs)
        self._caller_view = CallerView(
            settings,
            self.view,
            self.book,
            toolset,
            self._results.is_readable,
            searches=searches or SearchQueue(settings),
            has_finder=finder is not None,
        )
        pins = None if approvals is None else approvals.contents
        self._later = AfterAnswer()
        self._contents = Contents(settings.scan, events=events, clock=clock, later=self._later, pins=pins)
        self.resources = ServerResources(upstreams, self.announcer.bus, self._servers, self._contents)
        self.skills = SkillLibrary(self.resources)
        self.tasks = ServerTasks(
            upstreams,
            reach,
            self._servers,
            task_ids or TaskIds(),
            self._contents,
            self._answered,
        )
        self._upstreams = upstreams
        self._recognize_clients(settings)
        self.listings: list[tuple[str, str | None, Sequence[JsonObject], JsonObject]] = []
        """The latest answers to `tools/list`, with the revision, the cursor and the definitions that each is for."""
        self._last_listed: OrderedDict[str, Fingerprint] = OrderedDict()
        self.fleet = fleet
        charges = CallCharges(MemorySpend(clock), settings.spend, clock) if charges is None else charges
        self.likely = LikelyTools(self._caller_view, self.announcer, events=events, clock=clock)
        self._calls = ToolCalls(
            self._caller_view,
            fleet,
            charges,
            self.likely,
            events=events,
            clock=clock,
            observe=observe,
            contents=self._contents,
            tasks=self.tasks,
            later=self._later,
            audit=CallAudit(audit or AuditLog(clock=clock), self._later),
            rates=rates or RateLimiter(MemoryRates(clock), settings.rates, clock),
            results=self._results,
            learner=board.learner,
        )
        self.contents = ContentSearch(self.resources, self.skills, items or item_search(settings.items))
        self._meta = MetaCalls(
            self._caller_view,
            self._calls,
            fleet,
            self.announcer,
            self.likely,
            events=events,
            clock=clock,
            contents=self.contents,
            results=self._results,
            programs=self._programs,
            finder=finder,
        )
        self._events, self._clock = events, clock

    async def heard(self, server: ServerName, message: types.ServerNotification | AnyNotification) -> None:
        """A server's notification about resources, prompts or tasks."""
        if isinstance(message, AnyNotification):
            await self.tasks.on_notification(server, message)
        else:
            await self.resources.on_notification(server, message)

    def renew(self) -> None:
        """The servers have changed, or what they list."""
        self.view.renew()
        self.resources.renew()

    def close(self) -> None:
        self._later.flush()
        self.view.close()
        self.announcer.close()
        self.likely.close()
        self.pending_inputs.close()
        self.resources.close()

    async def introduction(self, caller: Caller = ALONE.caller) -> str:
        """The instructions for a client that connects. Waits for servers to start, as a listing does."""
        await self.view.started()
        return self._caller_view.introduction(caller)

    async def list_tools(self, caller: Caller = ALONE.caller) -> list[JsonObject]:
        """The tool definitions for this client."""
        await self.view.started()
        session = await self.book.update(caller.session, session_changes.listed)
        view, board = self._caller_view, self._caller_view.board
        if caller.session is not None:
            self._remember_listing(caller.session, board.catalog.fingerprint)
        permitted = board.permitted(view.turn("", session, caller))
        chosen, listed = view.listed(caller, session)
        listed = view.with_apps(listed, permitted, caller)
        whole = tokens_of(board.catalog, permitted)
        sent = whole if len(listed) == len(permitted) else tokens_listed(board.catalog, listed)
        self._events.emit(
            ToolsListed(
                at=self._clock.time(),
                exposure=chosen,
                tools=len(permitted),
                listed=len(listed),
                tokens_before=whole,
                tokens_after=sent,
                key=caller.name,
                client=caller.kind.name,
                conversation=session_hash(caller.session),
                programs=view.programs(caller, session).why,
            )
        )
        return listed

    async def call(self, name: str, arguments: JsonObject, context: CallContext = ALONE) -> Result:
        """Call a meta-tool, or any tool of the board by its name: a tool that is not listed can still be called.

        Pegboard's own errors are returned as results with ``isError`` (M8); an MCPError from a server is raised
        unchanged.
        """
        try:
            self.view.refresh()
            if name in META_TOOLS:
                self._later.flush()  # a ranking knows every call before it
                return await self._meta.answer(name, arguments, context)
            return await self._calls.call(name, arguments, context)
        except PegboardError as error:
            return self._calls.rejected(self._meta.attempt(name, arguments, context), error, shown=name)

    async def permitted(self, caller: Caller) -> tuple[dict[ToolId, JsonObject], Mapping[ToolId, str]]:
        """The definitions of all tools that the caller may use, whatever it is listed, and the category of each."""
        await self.view.started()
        await self.view.categorized()
        view = self._caller_view
        allowed, names = view.board.permitted(view.turn("", Session(), caller)), view.names(caller)
        found = {tool.id: on_the_wire(tool, names) for tool in view.board.catalog.tools if tool.id in allowed}
        return found, self.view.categories

    async def matching(self, query: str, caller: Caller) -> list[ToolId]:
        """The tools that a search finds, best first."""
        found = await self._caller_view.found(query, await self.book.get(caller.session), caller)
        return [each.tool for each in found.tools]

    async def route(self, turn: Turn, caller: Caller) -> tuple[Decision, RoutingBoard, Mapping[ToolId, str]]:
        """The decision of a turn with the caller's rights, the board that made it, and the names of its tools now."""
        await self.view.started()
        view = self._caller_view
        rights = view.turn("", turn.session, caller)
        state = replace(turn.state, auth=rights.scopes or frozenset(), tool_outputs=rights.state.tool_outputs)
        turn = replace(turn, scopes=rights.scopes, only=rights.only, habits=rights.habits, state=state)
        board = view.board
        await board.index_words()
        async with view.searches.place(caller):
            decision = await board.route(turn)
        return decision, board, view.names(caller).of

    async def search(self, arguments: JsonObject, caller: Caller) -> JsonObject:
        """What `search_tools` answers, as JSON. Raises PegboardError."""
        self.view.refresh()
        self._later.flush()
        result = await self._meta.answer(SEARCH, arguments, CallContext(caller=caller))
        answer: JsonObject = json.loads(result["content"][0]["text"])
        return answer

    async def tool_named(self, name: str, caller: Caller) -> ToolId:
        """The tool of this name on the wire that the caller may use. Raises ToolNotAvailable."""
        _, tool = await self._caller_view.resolve(name, caller)
        return tool.id

    def knows(self, name: str, caller: Caller) -> bool:
        """Whether a meta-tool or a tool of the board has this name."""
        return name in META_TOOLS or self._caller_view.names(caller).resolve(name) is not None

    async def accepts(self, name: str, arguments: JsonObject, caller: Caller) -> bool:
        """Whether this is a call of a tool of the board, by its name or through a meta-tool, with valid arguments."""
        if name in (INVOKE, EXECUTE):
            name, arguments = str(arguments.get("name")), arguments.get("arguments") or {}
        tool = None if name in META_TOOLS else self._caller_view.names(caller).resolve(name)
        if tool is None or tool not in self._caller_view.board.catalog:
            return False
        try:
            await check_arguments(self._caller_view.board.catalog[tool], arguments)
        except ArgumentsInvalid:
            return False
        return True

    def adopt(
        self, settings: Settings, board: RoutingBoard, items: ItemSearch, toolset: ToolsetView | None = None
    ) -> None:
        """Switch to another configuration; sessions continue."""
        self.contents.own = items
        self._recognize_clients(settings)
        self._caller_view.follow(settings, toolset)
        self._contents.policy = settings.scan
        self._results.adopt(settings)
        self._programs.adopt(settings.programs)
        self.view.adopt(settings, board, toolset)
        self.resources.renew()

    def _servers(self) -> Collection[str] | None:
        return self._caller_view.servers

    async def _answered(self, session: str | None, tool: str) -> Session:
        return await self.book.update(session, session_changes.answered(tool))

    def _recognize_clients(self, settings: Settings) -> None:
        """Recognize clients by these settings."""
        self._kinds: dict[tuple[str, str | None], ClientKind] = {}
        self._clients = settings.clients

    async def end_session(self, session: str) -> None:
        """The client has ended the session."""
        for announcer in (self.announcer, self.resources.prompts_announcer, self.resources.resources_announcer):
            announcer.disconnect(session)
        self.levels.forget(session)
        self.tasks.forget(session)
        await self.resources.forget(session)
        self._meta.forget(session)
        self.likely.forget(session)
        self._calls.forget(session)
        self.fleet.forget(session)
        await self.book.forget(session)

    def extensions(self, caller: Caller) -> dict[str, JsonObject]:
        """The extensions that the gateway relays for this caller, with the settings of its servers (SEP-2133)."""
        within, holder = self._caller_view.servers, caller.holder
        found: dict[str, list[JsonObject]] = {}
        for upstream in self._upstreams():
            name = upstream.server.name
            if (within is None or name in within) and (holder is None or holder.opens(name)):
                for extension in RELAYED & extensions_of(upstream.capabilities).keys():
                    found.setdefault(extension, []).append(extensions_of(upstream.capabilities)[extension] or {})
        return {extension: merged_settings(settings) for extension, settings in sorted(found.items())}

    def shows(self, uri: str, server: str, caller: Caller) -> bool:
        """Whether a resource is the interface of a tool of this server that the caller may use (MCP Apps)."""
        view = self._caller_view
        allowed = view.board.permitted(view.turn("", Session(), caller))
        tools = (tool for tool in view.board.catalog.of_server(server) if tool.id in allowed)
        return any(app_resource(tool) == uri for tool in tools)

    def kind(self, name: str, title: str | None) -> ClientKind:
        """What is known about a client with this name."""
        key = name, title
        if key not in self._kinds:
            if len(self._kinds) >= MOST_KINDS:
                self._kinds.clear()
            self._kinds[key] = client_kind(name, title, self._clients)
        return self._kinds[key]

    def input_schema(self, name: str) -> JsonObject | None:
        """The input schema of a tool, for headers that mirror arguments (MCP 2026-07-28, `Mcp-Param-*`)."""
        tool = self.view.tool_named(name)
        return None if tool is None else tool.input_schema

    def continue_session(self, session: str) -> None:
        """The session began in an earlier process: its client's last listing is unknown, and counts as outdated."""
        self._remember_listing(session, Fingerprint(""))

    def _remember_listing(self, session: str, listed: Fingerprint) -> None:
        self._last_listed[session] = listed
        self._last_listed.move_to_end(session)
        while len(self._last_listed) > MOST_REMEMBERED:
            self._last_listed.popitem(last=False)

    async def _board_changed(self) -> None:
        """Notify the sessions whose last listing is outdated."""
        now = self._caller_view.board.catalog.fingerprint
        await self.announcer.tell_all(lambda session: self._last_listed.get(session, now) != now)


async def all_hear(
    gateways: Sequence[Gateway], server: ServerName, message: types.ServerNotification | AnyNotification
) -> None:
    """Each passes a server's notification on to its own clients: none waits for another's, or fails with it."""
    heard = (gateway.heard(server, message) for gateway in gateways)
    for failed in await asyncio.gather(*heard, return_exceptions=True):
        if failed is not None:
            LOGGER.warning("A notification of server %s was not passed on", server, exc_info=failed)
