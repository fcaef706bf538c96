"""What a client is listed: the whole board while it is small, else the meta-tools."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from pegboard.catalog import Catalog, WireNames
from pegboard.gateways.mcp import meta_tools
from pegboard.model import JsonObject, Tool, ToolId
from pegboard.settings import Settings

MAX_NAME = 128
"""Longest tool name the protocol allows (MCP 2025-11-25, tool names)."""


def is_small(catalog: Catalog, settings: Settings) -> bool:
    """Under 10 tools or under 4,000 tokens, by default: then filtering would cost more than it saves (DESIGN §2.3)."""
    return len(catalog) < settings.eager_tools or sum(catalog.token_counts) < settings.eager_tokens


def is_eager(catalog: Catalog, settings: Settings, *, complete: bool) -> bool:
    """Whether to list the whole board. A board that is not ``complete`` yet is not known to be small."""
    return settings.exposure == "eager" or (settings.exposure == "auto" and complete and is_small(catalog, settings))


def wire_names(catalog: Catalog) -> WireNames:
    """Names on the wire; ours stay, an upstream's tool of the same name is renamed (M12)."""
    return WireNames.build((tool.id for tool in catalog.tools), reserved=meta_tools.META_TOOLS, limit=MAX_NAME)


def listing(
    catalog: Catalog, names: WireNames, *, eager: bool, pool: str, allowed: frozenset[ToolId], pinned: Iterable[ToolId]
) -> list[JsonObject]:
    """The definitions of a `tools/list` answer, in an order that depends on the catalog alone (P18)."""
    if eager:
        return [on_the_wire(tool, names) for tool in catalog.tools if tool.id in allowed]
    always = set(pinned) & allowed
    return [
        *meta_tools.definitions(pool),
        *(on_the_wire(tool, names) for tool in catalog.tools if tool.id in always),
    ]


def on_the_wire(tool: Tool, names: WireNames) -> JsonObject:
    """The definition as its server sent it, under the name that calls it here."""
    name = names.of[tool.id]
    return tool.definition if name == tool.name else {**tool.definition, "name": name}


def static_listing(catalog: Catalog, pool: str, pinned: Sequence[ToolId] = ()) -> list[JsonObject]:
    """What a client is listed when the board is not small: for audits."""
    allowed = frozenset(tool.id for tool in catalog.tools)
    return listing(catalog, wire_names(catalog), eager=False, pool=pool, allowed=allowed, pinned=pinned)
