"""What a caller sees: the exposure of its tools, their names on the wire, its rights and its session.

=========  =========================================================================================================
eager      the whole board, because it is small or because the configuration says so
static     the meta-tools and the always-available tools: the same for every caller with the same rights
dynamic    like static, and tools that searches enabled in this session; for clients that honour list_changed
native     the whole board in stable order, for clients known to defer its tools and search them themselves
route      meta-tools that rank by price, speed and reliability too, and always-available tools; if configured
=========  =========================================================================================================
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence

from pegboard.catalog import Catalog, WireNames, compact_json
from pegboard.gateways.mcp.gateway import meta_definitions
from pegboard.gateways.mcp.gateway.caller import Caller
from pegboard.gateways.mcp.gateway.catalog_view import CatalogView, wire_names
from pegboard.gateways.mcp.gateway.meta_definitions import introduction
from pegboard.gateways.mcp.gateway.session_changes import SessionBook, is_demoted
from pegboard.gateways.mcp.gateway.toolset_view import ToolsetView
from pegboard.model import AgentState, JsonObject, Message, Part, Session, Tool, ToolId, Turn
from pegboard.routing_board import RoutingBoard
from pegboard.settings import Exposure, Settings


class CallerView:
    """The catalog view as each caller sees it."""

    def __init__(
        self, settings: Settings, catalog_view: CatalogView, book: SessionBook, toolset: ToolsetView | None
    ) -> None:
        self.catalog_view = catalog_view
        self.book = book
        self.follow(settings, toolset)

    def follow(self, settings: Settings, toolset: ToolsetView | None) -> None:
        """Switch to another configuration."""
        self._settings = settings
        self._toolset = toolset

    @property
    def board(self) -> RoutingBoard:
        return self.catalog_view.board

    @property
    def servers(self) -> Collection[str] | None:
        """Servers whose resources and prompts are visible: those of the toolset; None for all."""
        return None if self._toolset is None else self.catalog_view.catalog.servers.keys()

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
        return Turn(messages=(message,), session=session, scopes=scopes, only=only, state=state, habits=caller.habits)

    async def resolve(self, name: str, caller: Caller, finder: str = meta_definitions.SEARCH) -> tuple[Session, ToolId]:
        """The session and the tool of this name. An unknown name may belong to a server that is still starting: wait
        for it.

        Raises ToolNotAvailable, with the meta-tool ``finder`` as the remedy.
        """
        if self.names(caller).resolve(name) is None:
            await self.catalog_view.started()
        session = await self.book.get(caller.session)
        turn = self.turn("", session, caller)
        allowed = self.board.allowed(turn)
        return session, self.catalog_view.resolve(name, allowed, self.names(caller), turn, finder=finder)

    def exposure(self, caller: Caller, session: Session) -> Exposure:
        small, tools = self.catalog_view.is_small, len(self.board.catalog)
        return choose(caller, session, self._settings, small=small, tools=tools)

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

    def is_listed(self, tool: ToolId, caller: Caller, session: Session) -> bool:
        if tool in self.board.pinned:
            return True
        chosen = self.exposure(caller, session)
        return chosen in ("eager", "native") or (chosen == "dynamic" and tool in session.enabled)

    def filled_in(self, tool: ToolId, arguments: JsonObject) -> JsonObject:
        """The arguments with the toolset's presets, which override the caller's."""
        return self._toolset.arguments(tool, arguments) if self._toolset else arguments


def choose(caller: Caller, session: Session, settings: Settings, *, small: bool, tools: int) -> Exposure:
    """The exposure of a request. ``small`` is whether the board is known to be small, ``tools`` how many would be
    listed.

    The connection's wish comes first, then the setting for its client, then the setting for all clients. Three limits
    apply: a list of revision 2026-07-28 never depends on the session, a client's cap on tools is never exceeded, and a
    session that ignored list_changed gets a static list.
    """
    kind = caller.kind
    wish = caller.exposure or kind.exposure or (None if settings.exposure == "auto" else settings.exposure)
    listens = not caller.modern and caller.session is not None
    by_kind: Exposure = "dynamic" if kind.list_changed and listens else "static"
    if wish is None:
        wish = "eager" if small else "native" if kind.native_search else by_kind
    if wish in ("eager", "native") and kind.most_tools is not None and tools > kind.most_tools:
        wish = by_kind
    if wish == "dynamic" and (not listens or is_demoted(session)):
        wish = "static"
    return wish


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
) -> list[JsonObject]:
    """The definitions of a `tools/list` answer, in an order that depends on the catalog alone (P18).

    Always-available tools beyond the client's cap of ``most`` tools are left out. The others and the meta-tools get the
    key ``always_load`` in their `_meta`. Tools that a search found do not: for a client with its own tool search they
    would invalidate the prompt cache.
    """
    pinned = [tool for tool in always if tool in allowed]

    def shown(tools: Iterable[ToolId]) -> list[JsonObject]:
        wanted = frozenset(tools)
        listed = (tool for tool in catalog.tools if tool.id in wanted)
        return [loaded(on_the_wire(tool, names), always_load if tool.id in pinned else None) for tool in listed]

    if exposure in ("eager", "native"):
        return shown(allowed)
    routes, dynamic = exposure == "route", exposure == "dynamic"
    first = meta_definitions.routing_definitions() if routes else meta_definitions.definitions(pool, dynamic=dynamic)
    kept = set(pinned if most is None else pinned[: max(0, most - len(first))])
    kept |= allowed.intersection(enabled) if dynamic else set()
    return [*(loaded(each, always_load) for each in first), *shown(kept)]


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
