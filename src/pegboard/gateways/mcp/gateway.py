"""The MCP gateway's behaviour, without any wire: what is listed, what is found, what is called."""

from __future__ import annotations

import asyncio
import difflib
import logging
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from mcp.shared.dispatcher import ProgressFnT

from pegboard.board import Board
from pegboard.catalog import compact_json
from pegboard.compose import with_aliases
from pegboard.errors import PegboardError, ToolNotAvailable
from pegboard.events import CallFinished, CallRejected
from pegboard.gateways.mcp import exposure, meta_tools
from pegboard.gateways.mcp.signatures import signature
from pegboard.model import AgentState, JsonObject, Message, Part, Tool, ToolId, Turn
from pegboard.routing import check_arguments
from pegboard.seams import Clock, EventSink, Filter
from pegboard.settings import Settings
from pegboard.upstreams import Fleet

LOGGER = logging.getLogger(__name__)

Result = dict[str, Any]

SUGGESTIONS = 5
SIMILAR = 0.7
SHORT_DESCRIPTION = 300
COALESCE_SECONDS = 0.05


class Gateway:
    """One board before many servers, for one client. Results of servers are relayed untouched (M7)."""

    def __init__(self, settings: Settings, board: Board, fleet: Fleet, *, events: EventSink, clock: Clock) -> None:
        self._settings = settings
        self._board = board
        self._fleet = fleet
        self._events = events
        self._clock = clock
        self._wait_until = clock.monotonic() + settings.start_wait
        self._names = exposure.wire_names(board.catalog)
        self._answered: frozenset[str] = frozenset()
        self._stale = False
        self._complete = False
        self._indexing: asyncio.Task[None] | None = None
        self._meta: Mapping[str, Callable[[JsonObject, ProgressFnT | None], Awaitable[Result]]] = {
            meta_tools.LIST_CATEGORIES: self._list_categories,
            meta_tools.SEARCH: self._search,
            meta_tools.DESCRIBE: self._describe,
            meta_tools.INVOKE: self._invoke,
        }

    async def catalog_changed(self) -> None:
        """A server's tools are others than before: the next use sees them, and they are indexed in the background."""
        self._stale = True
        if self._indexing is None or self._indexing.done():
            self._indexing = asyncio.create_task(self._index())

    def close(self) -> None:
        if self._indexing is not None:
            self._indexing.cancel()

    async def _index(self) -> None:
        """Many changes at once, as when servers start, are one (M18)."""
        while self._stale:
            await asyncio.sleep(COALESCE_SECONDS)
            self._refresh()
            try:
                await self._board.warm()
            except PegboardError:
                LOGGER.exception("Indexing failed; searches go by words alone")

    def _refresh(self) -> None:
        if not self._stale:
            return
        catalog = with_aliases(self._fleet.catalog(), self._settings)
        if catalog.fingerprint != self._board.catalog.fingerprint:
            self._board.replace_catalog(catalog)
            self._names = exposure.wire_names(catalog)
        self._stale = False

    async def _started(self) -> None:
        """Servers have a moment to start, once; whoever needs longer is not waited for (M15)."""
        await self._fleet.settled(max(0.0, self._wait_until - self._clock.monotonic()))
        self._refresh()

    async def list_tools(self) -> list[JsonObject]:
        """The definitions a client is listed."""
        await self._started()
        turn = self._turn("")
        return exposure.listing(
            self._board.catalog,
            self._names,
            eager=self._is_eager(),
            pool=self._board.pool(turn),
            allowed=self._board.permitted(turn),
            pinned=self._board.pinned,
        )

    async def call(
        self, name: str, arguments: JsonObject, *, meta: JsonObject | None = None, progress: ProgressFnT | None = None
    ) -> Result:
        """A meta-tool, or any tool of the board by its name, listed or not: a hidden tool is not a forbidden one.

        Our own errors come back as results with ``isError`` (M8); MCPError from a server is raised as it came.
        """
        try:
            self._refresh()
            if name in self._meta:
                check_meta_arguments(name, arguments)
                return await self._meta[name](arguments, progress)
            tool = await self._resolve(name)
            if not self._is_listed(tool):
                check_arguments(self._board.catalog[tool], arguments)
            return await self._relay(tool, arguments, meta, progress)
        except PegboardError as error:
            self._events.emit(CallRejected(at=self._clock.time(), tool=name, reason=error.code))
            return error.to_mcp()

    async def _search(self, arguments: JsonObject, _progress: ProgressFnT | None) -> Result:
        if not len(self._board.catalog):
            await self._started()
        where = self._filter(arguments)
        decision = await self._board.route(self._turn(arguments["query"]), where)
        limit = arguments.get("limit", meta_tools.DEFAULT_LIMIT)
        best = sorted(decision.candidates, key=lambda candidate: -candidate.score)
        found = [candidate.tool for candidate in best if candidate.tool in self._names.of][:limit]
        return _json_result({"tools": [self._entry(self._board.catalog[tool]) for tool in found]} | self._not_ready())

    async def _list_categories(self, arguments: JsonObject, _progress: ProgressFnT | None) -> Result:
        await self._started()
        allowed = self._board.allowed(self._turn(""))
        groups: dict[str, list[Tool]] = {}
        for tool in self._board.catalog.tools:
            if tool.id in allowed:
                groups.setdefault(category(tool), []).append(tool)
        wanted = arguments.get("category")
        if wanted is None:
            return _json_result(
                {"categories": [self._about(name, of) for name, of in groups.items()]} | self._not_ready()
            )
        if wanted not in groups:
            raise ToolNotAvailable(wanted, list(groups), remedy="Use one of the categories that are available.")
        return _json_result({"category": wanted, "tools": [self._names.of[tool.id] for tool in groups[wanted]]})

    async def _describe(self, arguments: JsonObject, _progress: ProgressFnT | None) -> Result:
        described: list[JsonObject] = []
        unknown: dict[str, list[str]] = {}
        for name in arguments["names"]:
            try:
                tool = await self._resolve(name)
                described.append(exposure.on_the_wire(self._board.catalog[tool], self._names))
            except ToolNotAvailable as error:
                unknown[name] = list(error.available)
        return _json_result({"tools": described} | ({"unknown": unknown} if unknown else {}))

    async def _invoke(self, arguments: JsonObject, progress: ProgressFnT | None) -> Result:
        """Rights and arguments are checked on the inner tool, by the one name that is also dispatched (M2, M3)."""
        name, inner = arguments["name"], arguments.get("arguments") or {}
        if name in meta_tools.META_TOOLS:
            raise ToolNotAvailable(name, [], remedy="Call Pegboard's own tools directly.")
        tool = await self._resolve(name)
        check_arguments(self._board.catalog[tool], inner)
        return await self._relay(tool, inner, None, progress)

    async def _relay(
        self, tool: ToolId, arguments: JsonObject, meta: JsonObject | None, progress: ProgressFnT | None
    ) -> Result:
        started = self._clock.monotonic()
        success = False
        try:
            result = await self._fleet.call(tool, arguments, meta=meta, progress=progress)
            success = not result.get("isError", False)
        finally:
            latency = (self._clock.monotonic() - started) * 1000
            self._events.emit(CallFinished(at=self._clock.time(), tool=str(tool), success=success, latency_ms=latency))
        if success:
            self._answered |= {tool.name}
        return result

    async def _resolve(self, name: str) -> ToolId:
        """The tool of a name, if the caller may use it; else an error with names that are near.

        A name that is not known yet may belong to a server that is still starting.
        """
        if self._names.resolve(name) is None:
            await self._started()
        tool = self._names.resolve(name)
        allowed = self._board.allowed(self._turn(""))
        if tool is None or tool not in allowed:
            raise ToolNotAvailable(name, self._near(name, allowed), remedy=f"Find tools with {meta_tools.SEARCH}.")
        return tool

    def _near(self, name: str, allowed: frozenset[ToolId]) -> list[str]:
        known = {self._names.of[tool]: tool for tool in self._board.catalog.position if tool in allowed}
        sharing = [self._names.of[tool] for tool in self._names.shared.get(name, ()) if tool in allowed]
        return sharing or difflib.get_close_matches(name, known, n=SUGGESTIONS, cutoff=SIMILAR)

    def _is_listed(self, tool: ToolId) -> bool:
        return tool in self._board.pinned or self._is_eager()

    def _is_eager(self) -> bool:
        """Once every server has been heard of, a restart does not make the board unknown again."""
        self._complete = self._complete or all(status.settled for status in self._fleet.status())
        return exposure.is_eager(self._board.catalog, self._settings, complete=self._complete)

    def _filter(self, arguments: JsonObject) -> Filter | None:
        server, wanted = arguments.get("server"), arguments.get("category")
        if server is None and wanted is None:
            return None
        others = (tool.id for tool in self._board.catalog.tools if wanted is not None and category(tool) != wanted)
        return Filter(servers=None if server is None else frozenset({server}), excluded=frozenset(others))

    def _turn(self, text: str) -> Turn:
        """A turn of this connection: its scopes, and what has answered so far."""
        scopes = frozenset(self._settings.scopes)
        state = AgentState(auth=scopes, tool_outputs=self._answered)
        return Turn(messages=(Message(role="user", parts=(Part(text=text),)),), scopes=scopes, state=state)

    def _entry(self, tool: Tool) -> Result:
        name = self._names.of[tool.id]
        description = " ".join(tool.description.split())
        short = description if len(description) <= SHORT_DESCRIPTION else f"{description[:SHORT_DESCRIPTION]}…"
        return {"name": name, "server": tool.server, "signature": signature(name, tool), "description": short}

    def _about(self, name: str, tools: list[Tool]) -> Result:
        server = self._board.catalog.servers.get(name)
        about: Result = {"category": name, "tools": len(tools)}
        return about | ({"description": server.description} if server and server.description else {})

    def _not_ready(self) -> Result:
        """Servers whose tools cannot be called now, and why."""
        missing = {
            status.name: status.reason or status.state for status in self._fleet.status() if not status.available
        }
        return {"servers_not_ready": missing} if missing else {}


def category(tool: Tool) -> str:
    """What a server says of its tool, else the server itself."""
    return tool.category or tool.server


META_SCHEMAS: Mapping[str, JsonObject] = {each["name"]: each["inputSchema"] for each in meta_tools.definitions("")}


def check_meta_arguments(name: str, arguments: JsonObject) -> None:
    """Raises ArgumentsInvalid for a meta-tool called wrongly."""
    check_arguments(Tool(id=ToolId("pegboard", name), input_schema=META_SCHEMAS[name]), arguments)


def _json_result(value: Result) -> Result:
    return {"content": [{"type": "text", "text": compact_json(value)}], "isError": False}
