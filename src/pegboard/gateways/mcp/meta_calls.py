"""What the meta-tools answer: categories, searches, definitions, routes, and the calls that go through them."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import mcp_types as types
from mcp import MCPError

from pegboard.errors import PegboardError, ToolNotAvailable
from pegboard.events import ToolsSearched
from pegboard.gateways.mcp import exposure, meta_tools, sessions
from pegboard.gateways.mcp.announcer import Announcer
from pegboard.gateways.mcp.answers import about, check_meta_arguments, entry, has_hints, json_result, not_ready
from pegboard.gateways.mcp.caller import Caller, Exchange
from pegboard.gateways.mcp.calls import Calls
from pegboard.gateways.mcp.desk import Desk
from pegboard.gateways.mcp.example_calls import how_to_call
from pegboard.gateways.mcp.offers import LastOffers, failed, shown, with_next
from pegboard.gateways.mcp.searches import matching, named_category
from pegboard.gateways.mcp.servers import Servers
from pegboard.model import Decision, JsonObject, Session, Tool, ToolId
from pegboard.routing import Profile
from pegboard.routing.economics import Subtask
from pegboard.seams import Clock, EventSink, Filter

Result = dict[str, Any]

STILL_EMBEDDING = "the tools are still being embedded; search again in a moment for what words do not find"
NOTHING_MATCHES = f"Nothing here matches. Search in other words, or open a category with {meta_tools.LIST_CATEGORIES}."
MOST_CATEGORIES = 20
"""Categories that are named after a search without a match."""
NOTHING_TO_JUDGE = "No call of this tool in this session succeeded since the last report."


class MetaCalls:
    """One method for each meta-tool. Errors, our own and those of servers, are raised where none says otherwise."""

    def __init__(
        self, desk: Desk, calls: Calls, fleet: Servers, announcer: Announcer, *, events: EventSink, clock: Clock
    ) -> None:
        self._desk = desk
        self._events = events
        self._clock = clock
        self._calls = calls
        self._fleet = fleet
        self._announcer = announcer
        self._offered = LastOffers()
        self._by_name: Mapping[str, Callable[[JsonObject, Exchange], Awaitable[Result]]] = {
            meta_tools.LIST_CATEGORIES: self._list_categories,
            meta_tools.SEARCH: self._search,
            meta_tools.DESCRIBE: self._describe,
            meta_tools.INVOKE: self._invoke,
            meta_tools.ROUTE: self._route,
            meta_tools.EXECUTE: self._execute,
            meta_tools.REPORT: self._report,
        }

    def __contains__(self, name: str) -> bool:
        return name in self._by_name

    async def answer(self, name: str, arguments: JsonObject, exchange: Exchange) -> Result:
        """Raises ArgumentsInvalid for what does not fit the meta-tool's own schema."""
        arguments = meta_tools.renamed(name, arguments)
        await check_meta_arguments(name, arguments)
        return await self._by_name[name](arguments, exchange)

    def forget(self, session: str) -> None:
        self._offered.forget(session)

    async def _search(self, arguments: JsonObject, exchange: Exchange) -> Result:
        desk, caller, server = self._desk, exchange.caller, arguments.get("server")
        await desk.view.started(some=server is None or bool(desk.board.catalog.of_server(server)))
        session = await desk.book.get(caller.session)
        turn, profile = desk.turn(arguments["query"], session, caller), desk.board.profile
        names = desk.names(caller)
        by_words: Result = {}
        if (whole := self._whole_category(arguments, profile, desk.board.allowed(turn))) is not None:
            found = whole[: arguments.get("limit")]
        else:
            limit = arguments.get("limit", profile.results or meta_tools.DEFAULT_LIMIT)
            decision = await desk.board.route(turn, self._filter(arguments))
            best = matching(decision, profile)
            found = [candidate.tool for candidate in best if candidate.tool in names.of][:limit]
            by_words = self._by_words(decision)
        call = self._how_to_call(found, session, caller)
        self._events.emit(ToolsSearched(at=self._clock.time(), found=len(found), by_words=bool(by_words)))
        categories, catalog = desk.view.categories, desk.board.catalog
        tools = [entry(catalog[tool], names.of[tool], categories.get(tool)) for tool in found]
        await self._enable(found, session, exchange)
        nothing = {} if tools else self._nothing(desk.board.allowed(turn))
        return json_result({"tools": tools} | call | by_words | nothing | self._not_ready(caller))

    def _whole_category(
        self, arguments: JsonObject, profile: Profile, allowed: frozenset[ToolId]
    ) -> list[ToolId] | None:
        """The tools of the category that a query names, where the profile has it so and nothing else narrows it."""
        if not profile.whole_categories or self._filter(arguments) is not None:
            return None
        there = {tool: category for tool, category in self._desk.view.categories.items() if tool in allowed}
        named = named_category(arguments["query"], there)
        return None if named is None else [tool for tool, category in there.items() if category == named]

    def _nothing(self, allowed: frozenset[ToolId]) -> Result:
        """What to do after a search without a match."""
        categories = self._desk.view.categories
        there = dict.fromkeys(category for tool, category in categories.items() if tool in allowed)
        return {"why": NOTHING_MATCHES, "categories": list(there)[:MOST_CATEGORIES]}

    async def _list_categories(self, arguments: JsonObject, exchange: Exchange) -> Result:
        desk, caller = self._desk, exchange.caller
        await desk.view.started()
        session = await desk.book.get(caller.session)
        allowed = desk.board.allowed(desk.turn("", session, caller))
        groups: dict[str, list[Tool]] = {}
        for tool in desk.board.catalog.tools:
            if tool.id in allowed:
                groups.setdefault(desk.view.categories[tool.id], []).append(tool)
        wanted = arguments.get("category")
        if wanted is None:
            servers = desk.board.catalog.servers
            described = desk.view.category_descriptions
            categories = [about(name, of, servers.get(name), described.get(name)) for name, of in groups.items()]
            return json_result({"categories": categories} | self._not_ready(caller))
        if wanted not in groups:
            raise ToolNotAvailable(wanted, list(groups), remedy="Use one of the categories that are available.")
        names = desk.names(caller)
        found = [tool.id for tool in groups[wanted]]
        listed = {"category": wanted, "tools": [names.of[tool] for tool in found]}
        call = self._how_to_call(found, session, caller)
        await self._enable(found, session, exchange)
        return json_result(listed | call)

    async def _describe(self, arguments: JsonObject, exchange: Exchange) -> Result:
        """Names that are not there are said beside the others."""
        described: list[JsonObject] = []
        unknown: dict[str, list[str]] = {}
        for name in arguments["names"]:
            try:
                _, tool = await self._desk.resolve(name, exchange.caller)
                definition = self._desk.board.catalog[tool]
                described.append(exposure.on_the_wire(definition, self._desk.names(exchange.caller)))
            except ToolNotAvailable as error:
                unknown[name] = list(error.available)
        return json_result({"tools": described} | ({"unknown": unknown} if unknown else {}))

    async def _route(self, arguments: JsonObject, exchange: Exchange) -> Result:
        """ROUTE (seed 001, algorithm 2), under whatever profile the board has."""
        desk, caller = self._desk, exchange.caller
        await desk.view.started(some=True)
        session = await desk.book.get(caller.session)
        turn = desk.turn(str(Subtask(**arguments["subtask"])), session, caller)
        turn = replace(turn, max_price=arguments.get("max_price"), deadline=arguments.get("deadline"))
        offers = await desk.board.offers(turn)
        self._offered.remember(caller.session, [offer.tool for offer in offers.tools])
        return json_result(shown(offers, desk.board.catalog, desk.names(caller)) | self._not_ready(caller))

    async def _execute(self, arguments: JsonObject, exchange: Exchange) -> Result:
        """EXECUTE-TOOL (seed 001, algorithm 1): what failed comes back as it came, with what else was offered.

        A server's protocol error becomes a result, so that the model sees it, unless the client is to act on it.
        """
        try:
            result = await self._invoke(arguments, exchange, finder=meta_tools.ROUTE)
        except PegboardError as error:
            result = self._calls.rejected(meta_tools.EXECUTE, error)
        except MCPError as error:
            if error.error.code == types.URL_ELICITATION_REQUIRED:
                raise
            result = failed(error)
        return await self._with_others(arguments["name"], result, exchange) if result.get("isError") else result

    async def _report(self, arguments: JsonObject, exchange: Exchange) -> Result:
        """The agent's own verdict counts once for each call of its session that succeeded."""
        _, tool = await self._desk.resolve(arguments["name"], exchange.caller, meta_tools.ROUTE)
        counted = self._calls.judge(exchange.caller.session, tool, useful=arguments["useful"])
        return json_result({"counted": counted} | ({} if counted else {"why": NOTHING_TO_JUDGE}))

    async def _invoke(self, arguments: JsonObject, exchange: Exchange, finder: str = meta_tools.SEARCH) -> Result:
        """Rights and arguments are checked on the inner tool, by the one name that is also dispatched (M2, M3)."""
        name, inner = arguments["name"], arguments.get("arguments") or {}
        if name in meta_tools.META_TOOLS:
            raise ToolNotAvailable(name, [], remedy="Call Pegboard's own tools directly.")
        _, tool = await self._desk.resolve(name, exchange.caller, finder)
        definition = self._desk.board.catalog[tool]
        await self._calls.check(definition, inner)
        return await self._calls.relay(definition, self._desk.filled_in(tool, inner), exchange)

    async def _with_others(self, name: str, result: Result, exchange: Exchange) -> Result:
        desk, caller = self._desk, exchange.caller
        session, names = await desk.book.get(caller.session), desk.names(caller)
        allowed = desk.board.allowed(desk.turn("", session, caller))
        called = names.resolve(name)
        others = [tool for tool in self._offered.of(caller.session) if tool != called and tool in allowed]
        return with_next(result, [names.of[tool] for tool in others if tool in names.of])

    async def _enable(self, tools: list[ToolId], session: Session, exchange: Exchange) -> None:
        """Where this client lists again when it is told, what was found joins its list (seed 002, approach D)."""
        desk, caller = self._desk, exchange.caller
        key = caller.session
        if key is None or not tools or desk.exposure(caller, session) != "dynamic":
            return
        now = await desk.book.update(key, sessions.enable(tools, cap=desk.room(caller)))
        if set(now.enabled) != set(session.enabled) and await self._announcer.tell(key, exchange.notify):
            await desk.book.update(key, sessions.noticed)

    def _how_to_call(self, found: Sequence[ToolId], session: Session, caller: Caller) -> Result:
        """By the exposure of this client, with the first tool as the example; nothing where there is none."""
        if not found:
            return {}
        desk, tool = self._desk, found[0]
        name, definition = desk.names(caller).of[tool], desk.board.catalog[tool]
        return {"call": how_to_call(name, definition, desk.exposure(caller, session))}

    def _by_words(self, decision: Decision) -> Result:
        """Where a search that goes by meaning too could not."""
        if decision.encoder or self._desk.board.profile.ranker != "hybrid":
            return {}
        why = STILL_EMBEDDING if self._desk.view.is_indexing else "no encoder answers"
        return {"ranked_by": f"words alone: {why}."}

    def _filter(self, arguments: JsonObject) -> Filter | None:
        server, wanted, hints = (arguments.get(key) for key in ("server", "category", "annotations"))
        if server is None and wanted is None and not hints:
            return None
        categories = self._desk.view.categories
        others = (
            tool.id
            for tool in self._desk.board.catalog.tools
            if (wanted is not None and categories[tool.id] != wanted) or not has_hints(tool, hints or {})
        )
        return Filter(servers=None if server is None else frozenset({server}), excluded=frozenset(others))

    def _not_ready(self, caller: Caller) -> Result:
        holder = caller.holder
        return not_ready(each for each in self._fleet.status() if holder is None or holder.may_see(each.name))
