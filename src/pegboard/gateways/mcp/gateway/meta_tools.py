"""The meta-tools: categories, searches, definitions, routes, and calls."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from typing import Any

import mcp_types as types
from mcp import MCPError

from pegboard.board_items import ItemKind
from pegboard.board_search import Found
from pegboard.errors import PegboardError, ToolNotAvailable
from pegboard.events import ToolsOffered, ToolsSearched
from pegboard.gateways.mcp.gateway import meta_definitions, session_changes
from pegboard.gateways.mcp.gateway.app_tools import for_apps_alone
from pegboard.gateways.mcp.gateway.call_audit import AttemptedCall, session_hash
from pegboard.gateways.mcp.gateway.call_results import CallResults
from pegboard.gateways.mcp.gateway.caller import CallContext, Caller
from pegboard.gateways.mcp.gateway.caller_view import CallerView, on_the_wire
from pegboard.gateways.mcp.gateway.example_calls import example_calls, how_to_call
from pegboard.gateways.mcp.gateway.fleet_protocol import Servers
from pegboard.gateways.mcp.gateway.likely_tools import LikelyTools
from pegboard.gateways.mcp.gateway.meta_results import (
    LastOffers,
    about,
    check_meta_arguments,
    entry,
    failed,
    has_hints,
    json_result,
    named_category,
    not_ready,
    search_again,
    shown,
    with_next,
    within_tokens,
)
from pegboard.gateways.mcp.gateway.notifications import Announcer
from pegboard.gateways.mcp.gateway.program_calls import ProgramCalls
from pegboard.gateways.mcp.gateway.server_finder import ServerFinder
from pegboard.gateways.mcp.gateway.tool_calls import ToolCalls
from pegboard.gateways.mcp.resources.content_search import ContentSearch
from pegboard.gateways.mcp.resources.resources import Visible, everything
from pegboard.model import Decision, JsonObject, Session, Tool, ToolId
from pegboard.programs.runner import ProgramRunner
from pegboard.protocols import Clock, EventSink, Filter
from pegboard.results.shape import READ
from pegboard.routing import Profile
from pegboard.routing.economics import Subtask

Result = dict[str, Any]

STILL_EMBEDDING = "the tools are still being embedded; search again soon for matches by meaning"
NOTHING_FITS = (
    "No tool here seems to do that. If one of the nearest tools does, call it; if none does, search with other words, "
    f"open a category with {meta_definitions.LIST_CATEGORIES}, or do without."
)
NOTHING_YET = "None of the tools that are known so far seems to do that."
MOST_CATEGORIES, FEWER_CATEGORIES = 20, 8
"""Categories that are named after a search without results; fewer beside the nearest tools."""
CATEGORY_TOKENS = 2000
"""Most tokens of the list of categories, while every category is named."""
CONFIGURED: Mapping[str | None, Sequence[ItemKind]] = {
    None: ("skill", "agent"),
    "skill": ("skill",),
    "agent": ("agent",),
}
"""What the configuration has of each kind that a search is for."""
NO_REGISTRY = "It needs a snapshot of a registry: `registry` in the configuration names one."
NO_SUCH_ITEM = "Nothing of this kind matches on the servers that run. Search with other words, or without a kind."
NOTHING_TO_JUDGE = "No call of this tool in this session succeeded since the last report."


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchMatches:
    """What a search found, best first, and how ``sure`` each tool is. ``certain``: servers that start later are not
    worth waiting for."""

    contents: Result
    found: list[ToolId] = field(default_factory=list)
    nearest: list[ToolId] = field(default_factory=list)
    sure: Mapping[ToolId, str | None] = field(default_factory=dict)
    notes: Result = field(default_factory=dict)
    certain: bool = False
    result: Found | None = None


class MetaCalls:
    """One method per meta-tool. Errors, of Pegboard and of servers, are raised unless a method says otherwise."""

    def __init__(
        self,
        view: CallerView,
        calls: ToolCalls,
        fleet: Servers,
        announcer: Announcer,
        likely: LikelyTools,
        *,
        events: EventSink,
        clock: Clock,
        contents: ContentSearch,
        results: CallResults,
        programs: ProgramRunner,
        finder: ServerFinder | None = None,
    ) -> None:
        self._finder = finder
        self._contents = contents
        self._view = view
        self._events = events
        self._clock = clock
        self._calls = calls
        self._fleet = fleet
        self._announcer = announcer
        self._likely = likely
        self._offered = LastOffers()
        self._programs = ProgramCalls(view, calls, programs, self.attempt, events=events, clock=clock)
        self._results = results

    async def answer(self, name: str, arguments: JsonObject, context: CallContext) -> Result:
        """Raises ArgumentsInvalid for arguments that violate the meta-tool's schema."""
        arguments = meta_definitions.renamed(name, arguments)
        await check_meta_arguments(name, arguments)
        return await self._methods()[name](arguments, context)

    def _methods(self) -> Mapping[str, Callable[[JsonObject, CallContext], Awaitable[Result]]]:
        """By name. Made for each call: each user has a gateway, and the table takes a kilobyte."""
        return {
            meta_definitions.LIST_CATEGORIES: self._list_categories,
            meta_definitions.SEARCH: self._search,
            meta_definitions.DESCRIBE: self._describe,
            meta_definitions.INVOKE: self._invoke,
            meta_definitions.ROUTE: self._route,
            meta_definitions.EXECUTE: self._execute,
            meta_definitions.REPORT: self._report,
            READ: self._results.read,
            meta_definitions.RUN: self._programs.run,
            meta_definitions.FIND_SERVER: self._find_server,
        }

    def attempt(self, name: str, arguments: JsonObject, context: CallContext) -> AttemptedCall:
        """What a client tried to call, by a tool's own name or through a meta-tool."""
        inner = meta_definitions.renamed(name, arguments)
        if name in (meta_definitions.INVOKE, meta_definitions.EXECUTE) and isinstance(inner.get("name"), str):
            name, arguments = inner["name"], inner.get("arguments") or {}
        catalog, tool = self._view.board.catalog, self._view.names(context.caller).resolve(name)
        called = catalog[tool] if tool is not None and tool in catalog else None
        return AttemptedCall(name=name, arguments=arguments, context=context, called=called)

    def forget(self, session: str) -> None:
        self._offered.forget(session)

    async def _search(self, arguments: JsonObject, context: CallContext) -> Result:
        view, caller, server = self._view, context.caller, arguments.get("server")
        await view.catalog_view.started(some=server is None or bool(view.board.catalog.of_server(server)))
        session = await view.book.get(caller.session)
        answer = await self._matches(arguments, caller, session)
        if not answer.certain and self._never_listed(caller, server) and await view.catalog_view.more_started():
            answer = await self._matches(arguments, caller, session)
        if answer.result is not None:
            decision, query = answer.result.decision, answer.result.query
            self._calls.searched(caller, decision.turn_id)
            if view.board.learner is not None:
                view.board.learner.searched(caller.conversation, decision.habits, query)
        self._events.emit(
            ToolsSearched(
                at=self._clock.time(),
                found=len(answer.found),
                by_words="ranked_by" in answer.notes,
                decision=answer.result.decision.turn_id if answer.result is not None else "",
                key=caller.name,
                client=caller.kind.name,
                conversation=session_hash(caller.session),
                at_hand=view.at_hand(answer.found or answer.nearest, caller, session),
            )
        )
        names, categories, catalog = view.names(caller), view.catalog_view.categories, view.board.catalog

        functions = self._programs.functions(caller, session)

        def shown(tools: Sequence[ToolId]) -> list[Result]:
            where = ((each, categories.get(each), answer.sure.get(each), functions.get(each)) for each in tools)
            return [entry(catalog[tool], names.of[tool], *more) for tool, *more in where]

        listed = {"tools": shown(answer.found)} | search_again(self._never_listed(caller, server)) | answer.notes
        listed |= {"nearest": shown(answer.nearest)} if answer.nearest else {}
        calls = self._calls_of(answer.found or answer.nearest[:1], session, caller)
        await self._enable(answer.found, session, context)
        self._likely.searched(arguments["query"], caller, missed=not answer.found)
        return json_result(listed | answer.contents | self._not_ready(caller) | calls)

    async def _matches(self, arguments: JsonObject, caller: Caller, session: Session) -> SearchMatches:
        """What is found among the tools that are known now."""
        view, query = self._view, arguments["query"]
        await view.catalog_view.categorized()
        profile = view.board.profile
        allowed = view.board.allowed(view.turn(query, session, caller))
        contents = await self._matching_contents(arguments, caller)
        if arguments.get("kind", "tool") != "tool":
            notes = {} if contents else {"why": NO_SUCH_ITEM}
            return SearchMatches(contents=contents, notes=notes, certain=bool(contents))
        if (whole := self._whole_category(arguments, profile, allowed)) is not None:
            return SearchMatches(contents=contents, found=whole[: arguments.get("limit")], certain=True)
        limit = arguments.get("limit", profile.results or meta_definitions.DEFAULT_LIMIT)
        result = await view.found(query, session, caller, self._filter(arguments))
        catalog, names = view.board.catalog, view.names(caller).of  # tools may have gone since
        best = [each for each in result.tools or result.nearest if each.tool in catalog and each.tool in names]
        best = [each for each in best if not for_apps_alone(catalog[each.tool])][:limit]
        sure = {each.tool: result.certainty(each) for each in best}
        found = [each.tool for each in best] if result.tools else []
        return SearchMatches(
            contents=contents,
            found=found,
            nearest=[] if result.tools or "skills" in contents else [each.tool for each in best],
            sure=sure,
            notes=self._notes(arguments, caller, result, allowed, nothing=not found and "skills" not in contents),
            certain=any(sure[tool] in ("high", None) for tool in found),
            result=result,
        )

    def _notes(
        self, arguments: JsonObject, caller: Caller, result: Found, allowed: frozenset[ToolId], *, nothing: bool
    ) -> Result:
        """What was searched for, if that is not what was written; and advice if nothing matches."""
        query = arguments["query"]
        spelled = {"searched_for": result.query} if result.query.casefold() != query.casefold() else {}
        notes = spelled | self._by_words(result.decision)
        most = FEWER_CATEGORIES if result.nearest else MOST_CATEGORIES
        if not nothing:
            return notes
        why = NOTHING_YET if self._never_listed(caller, arguments.get("server")) else NOTHING_FITS
        return self._nothing(why, allowed, most) | {"chance": round(result.chance, 2)} | notes

    async def _matching_contents(self, arguments: JsonObject, caller: Caller) -> Result:
        """The skills, agents, prompts and resources that a search without filters, or for their kind, finds; empty if
        there is none."""
        kind, server = arguments.get("kind"), arguments.get("server")
        if kind == "tool" or (kind is None and self._filter(arguments) is not None):
            return {}
        may_see = visible_to(caller)

        def visible(name: str) -> bool:
            return may_see(name) and server in (None, name)

        query, most = (
            arguments["query"],
            None if kind is None else arguments.get("limit", meta_definitions.DEFAULT_LIMIT),
        )
        place = self._view.searches.place(caller)
        found = await self._contents.found(query, _how_to_read, visible, kind=kind, most=most, place=place)
        if server is not None or kind not in CONFIGURED:
            return found
        async with self._view.searches.place(caller) if self._contents.own.any else nullcontext():
            own = await asyncio.to_thread(self._contents.configured, query, CONFIGURED[kind], _how_to_read)
        skills = [*own.pop("skills", ()), *found.get("skills", ())]
        return found | own | ({"skills": skills} if skills else {})

    def _whole_category(
        self, arguments: JsonObject, profile: Profile, allowed: frozenset[ToolId]
    ) -> list[ToolId] | None:
        """The tools of the category that the query names, if the profile allows that and there is no other filter."""
        if not profile.whole_categories or self._filter(arguments) is not None:
            return None
        there = {tool: category for tool, category in self._view.catalog_view.categories.items() if tool in allowed}
        named = named_category(arguments["query"], there)
        return None if named is None else [tool for tool, category in there.items() if category == named]

    def _nothing(self, why: str, allowed: frozenset[ToolId], most: int) -> Result:
        """Why nothing was found, and the categories to look through instead."""
        categories = self._view.catalog_view.categories
        there = dict.fromkeys(category for tool, category in categories.items() if tool in allowed)
        return {"why": why, "categories": list(there)[:most]}

    async def _list_categories(self, arguments: JsonObject, context: CallContext) -> Result:
        view, caller = self._view, context.caller
        await view.catalog_view.started()
        await view.catalog_view.categorized()
        session = await view.book.get(caller.session)
        allowed = view.board.allowed(view.turn("", session, caller))
        groups: dict[str, list[Tool]] = {}
        for tool in view.board.catalog.tools:
            if tool.id in allowed:
                groups.setdefault(view.catalog_view.categories[tool.id], []).append(tool)
        wanted = arguments.get("category")
        if wanted is None:
            servers = view.board.catalog.servers
            described = view.catalog_view.category_descriptions
            categories = [about(name, of, servers.get(name), described.get(name)) for name, of in groups.items()]
            counter = view.board.catalog.counter
            fitting = within_tokens(categories, CATEGORY_TOKENS, counter)
            return json_result({"categories": fitting} | self._not_ready(caller))
        if wanted not in groups:
            raise ToolNotAvailable(wanted, list(groups), remedy="Use one of the categories that are available.")
        names = view.names(caller)
        found = [tool.id for tool in groups[wanted]]
        listed = {"category": wanted, "tools": [names.of[tool] for tool in found]}
        calls = self._calls_of(found[:1], session, caller)
        await self._enable(found, session, context)
        return json_result(listed | calls)

    async def _find_server(self, arguments: JsonObject, context: CallContext) -> Result:
        """Raises ToolNotAvailable where no snapshot is configured."""
        if self._finder is None or not self._view.finds_servers:
            raise ToolNotAvailable(meta_definitions.FIND_SERVER, [], remedy=NO_REGISTRY)
        holder = context.caller.holder
        return json_result(await self._finder.answer(arguments, everything if holder is None else holder.may_see))

    async def _describe(self, arguments: JsonObject, context: CallContext) -> Result:
        """Unknown names are returned next to the definitions."""
        described: dict[str, list[JsonObject]] = {"tools": []}
        unknown: dict[str, list[str]] = {}
        for name in arguments["names"]:
            try:
                _, tool = await self._view.resolve(name, context.caller)
                described["tools"].append(on_the_wire(tool, self._view.names(context.caller)))
            except ToolNotAvailable as error:
                visible = visible_to(context.caller)
                content = await self._contents.loaded(name, visible)
                if content is None:
                    unknown[name] = list(error.available)
                else:
                    described.setdefault(content[0], []).append(content[1])
        return json_result(described | ({"unknown": unknown} if unknown else {}))

    async def _route(self, arguments: JsonObject, context: CallContext) -> Result:
        """ROUTE (EHRR, algorithm 2), under any profile."""
        view, caller = self._view, context.caller
        await view.catalog_view.started(some=True)
        session = await view.book.get(caller.session)
        turn = view.turn(str(Subtask(**arguments["subtask"])), session, caller)
        turn = replace(turn, max_price=arguments.get("max_price"), deadline=arguments.get("deadline"))
        offers = await view.board.offers(turn)
        self._events.emit(
            ToolsOffered(
                at=self._clock.time(),
                way="route",
                offered=len(offers.tools),
                decision=turn.id,
                key=caller.name,
                client=caller.kind.name,
                conversation=session_hash(caller.session),
                at_hand=view.at_hand([offer.tool for offer in offers.tools], caller, session),
            )
        )
        self._offered.remember(caller.session, [offer.tool for offer in offers.tools])
        return json_result(shown(offers, view.board.catalog, view.names(caller)) | self._not_ready(caller))

    async def _execute(self, arguments: JsonObject, context: CallContext) -> Result:
        """EXECUTE-TOOL (EHRR, algorithm 1): a failure is returned unchanged, with the other tools that were offered.

        A server's protocol error becomes a result, so that the model sees it, unless the client has to act on it.
        """
        try:
            result = await self._invoke(arguments, context, finder=meta_definitions.ROUTE)
        except PegboardError as error:
            attempt = self.attempt(meta_definitions.EXECUTE, arguments, context)
            result = self._calls.rejected(attempt, error, shown=meta_definitions.EXECUTE)
        except MCPError as error:
            if error.error.code == types.URL_ELICITATION_REQUIRED:
                raise
            result = failed(error)
        return await self._with_others(arguments["name"], result, context) if result.get("isError") else result

    async def _report(self, arguments: JsonObject, context: CallContext) -> Result:
        """The agent's verdict counts once for each successful call of its session."""
        _, tool = await self._view.resolve(arguments["name"], context.caller, meta_definitions.ROUTE)
        counted = self._calls.judge(context.caller.session, tool.id, useful=arguments["useful"])
        return json_result({"counted": counted} | ({} if counted else {"why": NOTHING_TO_JUDGE}))

    async def _invoke(
        self, arguments: JsonObject, context: CallContext, finder: str = meta_definitions.SEARCH
    ) -> Result:
        """Rights and arguments are checked for the inner tool, under the same name that is dispatched (M2, M3)."""
        name, inner = arguments["name"], arguments.get("arguments") or {}
        if name in meta_definitions.META_TOOLS:
            raise ToolNotAvailable(name, [], remedy="Call Pegboard's own tools directly.")
        return await self._calls.call(name, inner, context, finder=finder, listed=False)

    async def _with_others(self, name: str, result: Result, context: CallContext) -> Result:
        view, caller = self._view, context.caller
        session, names = await view.book.get(caller.session), view.names(caller)
        allowed = view.board.allowed(view.turn("", session, caller))
        called = names.resolve(name)
        others = [tool for tool in self._offered.of(caller.session) if tool != called and tool in allowed]
        return with_next(result, [names.of[tool] for tool in others if tool in names.of])

    async def _enable(self, tools: list[ToolId], session: Session, context: CallContext) -> None:
        """If this client honours list_changed, the tools join its list (lazy-loading PRD, approach D)."""
        view, caller = self._view, context.caller
        key = caller.session
        if key is None or not tools or view.exposure(caller, session) != "dynamic":
            return
        now = await view.book.update(key, session_changes.enable(tools, cap=view.room(caller)))
        if set(now.enabled) != set(session.enabled) and await self._announcer.tell(key, context.notify):
            await view.book.update(key, session_changes.noticed)

    def _calls_of(self, found: Sequence[ToolId], session: Session, caller: Caller) -> Result:
        """A complete call of each tool, last in the answer: `call` is that of the first, `calls` are those
        of the others."""
        if not found:
            return {}
        view, names, catalog = self._view, self._view.names(caller), self._view.board.catalog
        exposure = view.exposure(caller, session)
        first, *others = found
        calls = example_calls({names.of[tool]: catalog[tool] for tool in others}, exposure)
        return {"call": how_to_call(names.of[first], catalog[first], exposure)} | ({"calls": calls} if calls else {})

    def _by_words(self, decision: Decision) -> Result:
        """A note for a search that should use embeddings too but could not."""
        if decision.encoder or self._view.board.profile.ranker != "hybrid":
            return {}
        why = STILL_EMBEDDING if self._view.catalog_view.is_indexing else "no encoder is available"
        return {"ranked_by": f"words alone: {why}."}

    def _filter(self, arguments: JsonObject) -> Filter | None:
        server, wanted, hints = (arguments.get(key) for key in ("server", "category", "annotations"))
        if server is None and wanted is None and not hints:
            return None
        categories = self._view.catalog_view.categories
        others = (
            tool.id
            for tool in self._view.board.catalog.tools
            if (wanted is not None and categories[tool.id] != wanted) or not has_hints(tool, hints or {})
        )
        return Filter(servers=None if server is None else frozenset({server}), excluded=frozenset(others))

    def _never_listed(self, caller: Caller, server: str | None) -> list[str]:
        """The servers, or the one that a search is for, that are starting and have never listed their tools."""
        return [name for name in self._view.never_listed(caller) if server in (None, name)]

    def _not_ready(self, caller: Caller) -> Result:
        holder = caller.holder
        return not_ready(each for each in self._fleet.status() if holder is None or holder.may_see(each.name))


def _how_to_read(name: str) -> str:
    return f"Call {meta_definitions.DESCRIBE} with {json.dumps({'names': [name]})}."


def visible_to(caller: Caller) -> Visible:
    """The servers whose skills a caller may use: those of which it may use every tool."""
    return everything if caller.holder is None else caller.holder.opens
