"""What a client is listed, by what the client is (DESIGN §2.3).

=========  =========================================================================================================
eager      the whole board, because it is small or because the configuration says so
static     the meta-tools and what is always available: the same for everybody who may use the same tools
dynamic    the same, and the tools that searches enabled in this session; for clients that list again when told
native     the whole board in stable order, for clients that are known to defer it and search it themselves
route      two meta-tools that go by price, speed and reliability too, and what is always available; where configured
=========  =========================================================================================================
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from types import MappingProxyType

from pegboard.catalog import Catalog, WireNames, compact_json
from pegboard.gateways.mcp import meta_tools
from pegboard.gateways.mcp.caller import Caller
from pegboard.gateways.mcp.sessions import is_demoted
from pegboard.model import JsonObject, Session, Tool, ToolId
from pegboard.settings import Exposure, Settings

MAX_NAME = 128
"""Longest tool name the protocol allows (MCP 2025-11-25, tool names)."""


def is_small(catalog: Catalog, settings: Settings) -> bool:
    """Under 10 tools or under 4,000 tokens, by default: then filtering would cost more than it saves (DESIGN §2.3)."""
    return len(catalog) < settings.eager_tools or sum(catalog.token_counts) < settings.eager_tokens


def choose(caller: Caller, session: Session, settings: Settings, *, small: bool, tools: int) -> Exposure:
    """The exposure of a request. ``small`` is a board that is known to be so; ``tools`` those that would be listed.

    What the connection asked for comes first, then what the configuration says of its client, and of all clients;
    but a list of revision 2026-07-28 never depends on the session, a client's cap on tools is never exceeded, and
    a session that does not list again when told is not told again.
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


def wire_names(
    tools: Iterable[ToolId], *, longest: int | None = None, renamed: Mapping[ToolId, str] = MappingProxyType({})
) -> WireNames:
    """Names on the wire; ours stay, an upstream's tool of the same name is renamed (M12)."""
    limit = min(MAX_NAME, longest or MAX_NAME)
    return WireNames.build(tools, reserved=meta_tools.META_TOOLS, limit=limit, renamed=renamed)


def room(caller: Caller, settings: Settings, pinned: int) -> int:
    """How many tools searches may have enabled at once, next to the meta-tools and ``pinned`` always-available ones."""
    cap = settings.session_tools
    if caller.kind.most_tools is None:
        return cap
    return max(0, min(cap, caller.kind.most_tools - len(meta_tools.SEARCHING) - pinned))


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

    Of the always-available tools those beyond the client's cap of ``most`` tools are left out. They and the meta-tools
    carry ``always_load`` in their `_meta`. What a search found does not: a client with a tool search of its own would
    have its prompt cache written anew for it.
    """
    pinned = [tool for tool in always if tool in allowed]

    def shown(tools: Iterable[ToolId]) -> list[JsonObject]:
        wanted = frozenset(tools)
        listed = (tool for tool in catalog.tools if tool.id in wanted)
        return [loaded(on_the_wire(tool, names), always_load if tool.id in pinned else None) for tool in listed]

    if exposure in ("eager", "native"):
        return shown(allowed)
    routes, dynamic = exposure == "route", exposure == "dynamic"
    first = meta_tools.routing_definitions() if routes else meta_tools.definitions(pool, dynamic=dynamic)
    kept = set(pinned if most is None else pinned[: max(0, most - len(first))])
    kept |= allowed.intersection(enabled) if dynamic else set()
    return [*(loaded(each, always_load) for each in first), *shown(kept)]


def on_the_wire(tool: Tool, names: WireNames) -> JsonObject:
    """The definition as its server sent it, under the name that calls it here."""
    name = names.of[tool.id]
    return tool.definition if name == tool.name else {**tool.definition, "name": name}


def loaded(definition: JsonObject, key: str | None) -> JsonObject:
    """The definition with ``key`` in its `_meta`, unless its server sets that itself; unchanged without a key."""
    if key is None:
        return definition
    return {**definition, "_meta": {key: True} | dict(definition.get("_meta") or {})}


def tokens_of(catalog: Catalog, tools: Collection[ToolId]) -> int:
    """Tokens of these tools' definitions, in the form that every figure of tokens is about."""
    return sum(count for tool, count in zip(catalog.tools, catalog.token_counts, strict=True) if tool.id in tools)


def tokens_listed(catalog: Catalog, definitions: Sequence[JsonObject]) -> int:
    """Tokens of definitions as a client is listed them, in the same form."""
    kept = ({key: each.get(key, "") for key in ("name", "description", "inputSchema")} for each in definitions)
    return sum(catalog.counter.count([compact_json(each) for each in kept]))


def static_listing(catalog: Catalog, pool: str, always: Sequence[ToolId] = ()) -> list[JsonObject]:
    """What a client is listed when the board is not small: for audits."""
    ids = [tool.id for tool in catalog.tools]
    return listing(catalog, wire_names(ids), exposure="static", pool=pool, allowed=frozenset(ids), always=always)
