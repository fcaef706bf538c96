"""What a caller sees: the exposure of its tools, their names on the wire, its rights and its session.

=========  =========================================================================================================
eager      the whole board, because it is small or because the configuration says so; within ``list_budget``
static     the meta-tools and the always-available tools: the same for every caller with the same rights
dynamic    like static, and tools that searches enabled in this session; if configured, for clients that list again
native     the whole board in stable order, for clients known to defer its tools and search them themselves
route      meta-tools that rank by price, speed and reliability too, and always-available tools; if configured
=========  =========================================================================================================
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Iterable, Sequence
from fnmatch import fnmatchcase
from uuid import uuid4

from pegboard.board_search import Found, found_tools
from pegboard.catalog import Catalog, WireNames, compact_json
from pegboard.empty_sets import EMPTY
from pegboard.errors import NotApproved, SwitchedOff, ToolNotAvailable
from pegboard.gateways.mcp.gateway import meta_definitions
from pegboard.gateways.mcp.gateway.app_tools import MOST_APPS, is_for_apps, missing_apps
from pegboard.gateways.mcp.gateway.caller import Caller
from pegboard.gateways.mcp.gateway.catalog_view import CatalogView, wire_names
from pegboard.gateways.mcp.gateway.clients import ClientKind
from pegboard.gateways.mcp.gateway.meta_definitions import introduction
from pegboard.gateways.mcp.gateway.search_queue import SearchQueue
from pegboard.gateways.mcp.gateway.session_changes import SessionBook, is_demoted
from pegboard.gateways.mcp.gateway.toolset_view import ToolsetView
from pegboard.model import AgentState, JsonObject, Message, Part, Session, Tool, ToolId, Turn
from pegboard.programs.break_even import ProgramOffer, offer
from pegboard.protocols import Filter
from pegboard.results.result_reader import READER
from pegboard.routing_board import RoutingBoard
from pegboard.settings import Exposure, Settings

LOGGER = logging.getLogger(__name__)
STATIC_TOKENS = 1_500
"""Tokens of a static list, about: the meta-tools, and the pool in the description of `search_tools`."""


class CallerView:
    """The catalog view as each caller sees it."""

    def __init__(
        self,
        settings: Settings,
        catalog_view: CatalogView,
        book: SessionBook,
        toolset: ToolsetView | None,
        is_readable: Callable[[Caller], bool] = lambda caller: False,
        *,
        searches: SearchQueue,
        has_finder: bool = False,
    ) -> None:
        self._has_finder = has_finder
        self.searches = searches
        self._is_readable = is_readable
        self.catalog_view = catalog_view
        self.book = book
        self._said: frozenset[str] = EMPTY
        self.follow(settings, toolset)

    def follow(self, settings: Settings, toolset: ToolsetView | None) -> None:
        """Switch to another configuration."""
        self._settings = settings
        self._toolset = toolset

    @property
    def board(self) -> RoutingBoard:
        return self.catalog_view.board

    @property
    def pushes(self) -> bool:
        """Whether tools that a conversation makes likely join its list."""
        return self._settings.push

    @property
    def finds_servers(self) -> bool:
        """Whether `find_server` is offered: a registry's snapshot is configured."""
        return self._has_finder and self._settings.registry.snapshot is not None

    @property
    def servers(self) -> Collection[str] | None:
        """Servers whose resources and prompts are visible: those of the toolset, which may have no tools, but not those
        that it hides whole; None for all."""
        chosen = None if self._toolset is None else self._toolset.settings
        if chosen is None or not (chosen.servers or chosen.tools or chosen.hidden):
            return None
        named = set(chosen.servers or (() if chosen.tools else self._settings.servers))
        hidden = {name for name in named if any(fnmatchcase(f"{name}/", pattern) for pattern in chosen.hidden)}
        return self.catalog_view.catalog.servers.keys() | (named - hidden)

    def names(self, caller: Caller) -> WireNames:
        return self.catalog_view.names(caller.kind.longest_name)

    def turn(self, text: str, session: Session, caller: Caller) -> Turn:
        """A turn of this session, with the caller's rights (those of the process if there are no tokens) and the tools
        that have answered so far."""
        holder = caller.holder
        scopes = frozenset(self._settings.scopes) if holder is None else holder.scopes
        state = AgentState(auth=scopes, tool_outputs=session.answered)
        message = Message(role="user", parts=(Part(text=text),))
        only = None if holder is None else holder.only
        habits = "" if self.board.learner is None else caller.habits
        name = uuid4().hex if text else ""  # only searches are decisions that a log names
        return Turn(id=name, messages=(message,), session=session, scopes=scopes, only=only, state=state, habits=habits)

    async def found(self, query: str, session: Session, caller: Caller, where: Filter | None = None) -> Found:
        """What a search finds, once it is the caller's turn."""
        index = await self.catalog_view.search_index()
        await self.board.index_words()
        async with self.searches.place(caller):
            return await found_tools(self.board, index, lambda text: self.turn(text, session, caller), query, where)

    async def resolve(self, name: str, caller: Caller, finder: str = meta_definitions.SEARCH) -> tuple[Session, Tool]:
        """The session and the tool of this name, if the caller may use it now.

        Raises ToolNotAvailable, with the meta-tool ``finder`` as the remedy, or NotApproved.
        """
        session = await self.book.get(caller.session)
        resolved = self.catalog_view.resolved(caller.holder, session.answered, caller.kind.longest_name)
        if name not in resolved:
            resolved[name] = await self._looked_up(name, caller, finder)
        return session, resolved[name]

    async def _looked_up(self, name: str, caller: Caller, finder: str) -> Tool:
        """An unknown name may belong to a server that is still starting: wait for it."""
        if self.names(caller).resolve(name) is None:
            await self.catalog_view.started()
        if (listed := self.names(caller).resolve(name)) is not None:
            await self.catalog_view.reviewed(listed)
        turn = self.turn("", await self.book.get(caller.session), caller)
        allowed = self.board.allowed(turn)
        try:
            tool = self.catalog_view.resolve(name, allowed, self.names(caller), turn, finder=finder)
        except ToolNotAvailable as error:
            starting = self.never_listed(caller)
            if isinstance(error, NotApproved | SwitchedOff) or not starting:
                raise
            remedy = (
                f"It may be of a server that is still starting ({', '.join(starting)}): call it again in a moment. "
            )
            raise ToolNotAvailable(name, error.available, remedy=remedy + error.remedy) from None
        return self.board.catalog[tool]

    def never_listed(self, caller: Caller) -> list[str]:
        """The servers of this caller that are starting and have never listed their tools."""
        holder = caller.holder
        return [name for name in self.catalog_view.never_listed if holder is None or holder.may_see(name)]

    def exposure(self, caller: Caller, session: Session) -> Exposure:
        view = self.catalog_view
        return choose(caller, session, self._settings, small=view.is_small, tools=view.size, tokens=view.tokens)

    def programs(self, caller: Caller, session: Session) -> ProgramOffer:
        """Whether this caller is offered `run_program`, and why. It follows from the settings, the client and the
        board, so that a list changes only with them."""
        settings, view = self._settings.programs, self.catalog_view
        if settings.mode != "auto":
            return offer(settings, tools=0, listed=0, small=False)
        if caller.kind.most_tools is not None:
            return ProgramOffer(offered=False, why="few tools")
        whole = self.exposure(caller, session) in ("eager", "native")
        listed = view.tokens if whole else min(view.tokens, STATIC_TOKENS)
        return offer(settings, tools=view.size, listed=listed, small=view.is_small, searches=not whole)

    def listed(self, caller: Caller, session: Session) -> tuple[Exposure, list[JsonObject]]:
        """The exposure of a `tools/list` request, and the definitions that it is answered with."""
        board, turn, room = self.board, self.turn("", session, caller), self.room(caller)
        chosen, budget = self.exposure(caller, session), self._settings.list_budget
        definitions = listing(
            board.catalog,
            self.names(caller),
            exposure=chosen,
            pool=board.pool(turn),
            allowed=board.permitted(turn),
            always=board.pinned,
            enabled=session.enabled[-room:] if room else (),
            most=caller.kind.most_tools,
            always_load=caller.kind.always_load,
            budget=budget,
            reads=self._is_readable(caller),
            runs=self.programs(caller, session).offered,
            finds=self.finds_servers,
        )
        self._warn_of_budget(caller, chosen, {each["name"] for each in definitions})
        return chosen, definitions

    def _warn_of_budget(self, caller: Caller, chosen: Exposure, listed: Collection[str]) -> None:
        """Say once what ``list_budget`` keeps from a listing that somebody asked for."""
        wish = caller.exposure or caller.kind.exposure or self._settings.exposure
        names, budget = self.names(caller), self._settings.list_budget
        pinned = [names.of[tool] for tool in self.board.pinned if tool in names.of]
        left_out = [name for name in pinned if name not in listed]
        if budget and wish in ("eager", "native") and chosen != wish and self.catalog_view.tokens > budget:
            self._warn(f"All tools take {self.catalog_view.tokens} tokens: {chosen} instead of {wish}.")
        elif budget and left_out and caller.kind.most_tools is None and caller.holder is None:
            self._warn(f"Always-available tools that do not fit: {', '.join(left_out)}.")

    def _warn(self, text: str) -> None:
        if text not in self._said:
            self._said |= {text}
            LOGGER.warning("list_budget is %d tokens. %s Search finds them.", self._settings.list_budget, text)

    def room(self, caller: Caller) -> int:
        """How many tools searches may add to the caller's list."""
        return room(caller, self._settings, len(self.board.pinned))

    def introduction(self, caller: Caller) -> str:
        """The instructions for this client; they cover the servers whose tools it may use."""
        catalog, session = self.board.catalog, Session()
        permitted = {tool.server for tool in self.board.permitted(self.turn("", session, caller))}
        seen = [
            server
            for name, server in catalog.servers.items()
            if (caller.holder is None or caller.holder.may_see(name))
            and (name in permitted or not catalog.of_server(name))
        ]
        budget = self._settings.instruction_tokens
        return introduction(seen, self.exposure(caller, session), budget, catalog.counter)

    def with_apps(self, listed: list[JsonObject], allowed: frozenset[ToolId], caller: Caller) -> list[JsonObject]:
        """The listing and, for a host that shows interfaces, the tools that have one, if they fit (MCP Apps)."""
        if not caller.apps:
            return listed
        names, most, budget = self.names(caller), caller.kind.most_tools, self._settings.list_budget
        room = MOST_APPS if most is None else max(0, most - len(listed))
        catalog = self.board.catalog
        missing = [tool.id for tool in missing_apps(catalog, allowed, [each["name"] for each in listed], names)]
        if budget:
            missing = _fitting(catalog, missing, names, budget - tokens_listed(catalog, listed))
        return [*listed, *(on_the_wire(catalog[tool], names) for tool in missing[:room])]

    def is_listed(self, tool: ToolId, caller: Caller, session: Session) -> bool:
        if tool in self.catalog_view.pinned or (caller.apps and is_for_apps(self.board.catalog[tool])):
            return True
        chosen = self.exposure(caller, session)
        return chosen in ("eager", "native") or (chosen == "dynamic" and tool in session.enabled)

    def at_hand(self, shown: Iterable[ToolId], caller: Caller, session: Session) -> tuple[str, ...]:
        """The tools that an answer shows, and those that the caller is listed anyway, as events name them."""
        added = reversed(session.enabled) if self.exposure(caller, session) == "dynamic" else ()
        allowed = self.board.permitted(self.turn("", session, caller))
        listed = (tool for tool in (*self.board.pinned, *added) if tool in allowed)
        return tuple(map(str, dict.fromkeys([*shown, *listed])))

    def filled_in(self, tool: ToolId, arguments: JsonObject) -> JsonObject:
        """The arguments with the toolset's presets, which override the caller's."""
        return self._toolset.arguments(tool, arguments) if self._toolset else arguments


def choose(
    caller: Caller, session: Session, settings: Settings, *, small: bool, tools: int, tokens: int = 0
) -> Exposure:
    """The exposure of a request. ``small`` is whether the board is known to be small, ``tools`` and ``tokens`` are what
    would be listed.

    The connection's wish comes first, then the setting for its client, then the setting for all clients, where
    `dynamic` means those that list again when told. Without any, nobody's list grows: that would empty the client's
    prompt cache with every search (docs/decisions/0029). Four limits apply: a list of revision 2026-07-28 never depends
    on the session, neither a client's cap on tools nor ``list_budget`` is ever exceeded (except by a client that is
    known to defer what it is listed), and a session that ignored list_changed gets a static list.
    """
    kind = caller.kind
    wish = caller.exposure or kind.exposure or _of_all(settings, kind)
    listens = not caller.modern and caller.session is not None
    if wish is None:
        wish = "eager" if small else "native" if kind.native_search else "static"
    if wish in ("eager", "native") and kind.most_tools is not None and tools > kind.most_tools:
        wish = "static"
    deferred = wish == "native" and kind.native_search
    if wish in ("eager", "native") and 0 < settings.list_budget < tokens and not deferred:
        wish = "static"
    if wish == "dynamic" and (not listens or is_demoted(session)):
        wish = "static"
    return wish


def _of_all(settings: Settings, kind: ClientKind) -> Exposure | None:
    if settings.exposure == "dynamic" and not kind.list_changed:
        return "static"
    return None if settings.exposure == "auto" else settings.exposure


def room(caller: Caller, settings: Settings, pinned: int) -> int:
    """How many tools searches may have enabled at once, next to the meta-tools and ``pinned`` always-available ones."""
    cap = settings.session_tools
    if caller.kind.most_tools is None:
        return cap
    return max(0, min(cap, caller.kind.most_tools - len(meta_definitions.SEARCHING) - pinned))


def listing(
    catalog: Catalog,
    names: WireNames,
    *,
    exposure: Exposure,
    pool: str,
    allowed: frozenset[ToolId],
    always: Iterable[ToolId] = (),
    enabled: Iterable[ToolId] = (),
    most: int | None = None,
    always_load: str | None = None,
    budget: int = 0,
    reads: bool = False,
    runs: bool = False,
    finds: bool = False,
) -> list[JsonObject]:
    """The definitions of a `tools/list` answer, in an order that depends on the catalog alone (P18).

    Always-available tools beyond the client's cap of ``most`` tools are left out, and so is what does not fit into a
    ``budget`` of tokens (0: no limit): always-available tools come first, then the last found. The meta-tools and the
    always-available tools get the key ``always_load`` in their `_meta`. Tools that a search found do not: for a client
    with its own tool search they would invalidate the prompt cache. With ``reads``, `read_result` is listed; with
    ``runs``, `run_program`; with ``finds``, `find_server`.
    """
    pinned = [tool for tool in always if tool in allowed]

    def shown(tools: Iterable[ToolId]) -> list[JsonObject]:
        wanted = frozenset(tools)
        listed = (tool for tool in catalog.tools if tool.id in wanted)
        return [loaded(on_the_wire(tool, names), always_load if tool.id in pinned else None) for tool in listed]

    more = [*([READER] if reads else []), *([meta_definitions.program_definition(exposure)] if runs else [])]
    more += [meta_definitions.finder_definition()] if finds else []
    if exposure in ("eager", "native"):
        return [*(loaded(each, always_load) for each in more), *shown(allowed)]
    routes, dynamic = exposure == "route", exposure == "dynamic"
    first = meta_definitions.routing_definitions() if routes else meta_definitions.definitions(pool, dynamic=dynamic)
    first = [*first, *more]
    wanted = pinned if most is None else pinned[: max(0, most - len(first))]
    wanted = [*wanted, *(tool for tool in reversed([*enabled]) if tool in allowed)] if dynamic else wanted
    kept = wanted if not budget else _fitting(catalog, wanted, names, budget - tokens_listed(catalog, first))
    return [*(loaded(each, always_load) for each in first), *shown(kept)]


def _fitting(catalog: Catalog, wanted: Iterable[ToolId], names: WireNames, room: int) -> list[ToolId]:
    """Of these tools, the most important first, those that fit into ``room`` tokens; too large ones are skipped."""
    kept = []
    for tool in dict.fromkeys(wanted):
        tokens = tokens_listed(catalog, [on_the_wire(catalog[tool], names)])
        if tokens <= room:
            kept.append(tool)
            room -= tokens
    return kept


def on_the_wire(tool: Tool, names: WireNames) -> JsonObject:
    """The definition as its server sent it, under its name on the wire."""
    name = names.of[tool.id]
    return tool.definition if name == tool.name else {**tool.definition, "name": name}


def loaded(definition: JsonObject, key: str | None) -> JsonObject:
    """The definition with ``key`` in its `_meta`, unless its server sets it itself; unchanged without a key."""
    if key is None:
        return definition
    return {**definition, "_meta": {key: True} | dict(definition.get("_meta") or {})}


def tokens_of(catalog: Catalog, tools: Collection[ToolId]) -> int:
    """Tokens of these tools' canonical definitions, the form that all token figures use."""
    return sum(count for tool, count in zip(catalog.tools, catalog.token_counts, strict=True) if tool.id in tools)


def tokens_listed(catalog: Catalog, definitions: Sequence[JsonObject]) -> int:
    """Tokens of definitions as listed to a client, in the same form."""
    kept = ({key: each.get(key, "") for key in ("name", "description", "inputSchema")} for each in definitions)
    return sum(catalog.counter.count([compact_json(each) for each in kept]))


def static_listing(catalog: Catalog, pool: str, always: Sequence[ToolId] = ()) -> list[JsonObject]:
    """What a client is listed if the board is not small; for audits."""
    ids = [tool.id for tool in catalog.tools]
    return listing(catalog, wire_names(ids), exposure="static", pool=pool, allowed=frozenset(ids), always=always)
