"""Measures what Pegboard would send to a client, by running the gateway over the catalog without servers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from pegboard.catalog import BpeCounter, Catalog, canonical_text, compact_json
from pegboard.catalog.ingest import tool_from_mcp
from pegboard.compose import Parts, build_routing, default_parts
from pegboard.gateways.mcp.gateway import meta_definitions
from pegboard.gateways.mcp.gateway.caller import Caller
from pegboard.gateways.mcp.gateway.caller_view import choose
from pegboard.gateways.mcp.gateway.catalog_view import is_small
from pegboard.gateways.mcp.gateway.gateway import Gateway
from pegboard.model import Floats, Session, Tool, Turn
from pegboard.routing_board import RoutingBoard
from pegboard.settings import Settings
from pegboard.stores import MemoryEmbeddings
from pegboard.upstreams import Fleet

SAMPLED = 20
"""Number of searches, and of descriptions, over which a mean is taken."""
QUERY_WORDS = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class ExposureCost:
    """Tokens of each listed definition (the meta-tools, if ``mode`` is static) and of the calls to them.

    ``search`` and ``describe`` are means over calls, each counted with its result.
    """

    mode: Literal["eager", "static"]
    definitions: Mapping[str, int]
    phase1: int
    search: float
    describe: float

    @property
    def tokens(self) -> int:
        """Tokens that every turn carries."""
        return sum(self.definitions.values())


class UniformEncoder:
    """An encoder that gives all texts the same vector: only the size of search results matters here."""

    provider = model = "alike"
    dimensions = 1

    async def encode(self, texts: Sequence[str]) -> Floats:
        return np.ones((len(texts), 1), np.float32)


async def exposed(catalog: Catalog, settings: Settings) -> ExposureCost:
    """The size of the listing, and the mean size of searches and descriptions for this catalog."""
    parts = default_parts(settings, encoder=UniformEncoder(), embeddings=MemoryEmbeddings())
    board = build_routing(settings, catalog, parts=parts)
    gateway = _gateway(settings, board, parts)
    listed = [tool_from_mcp("pegboard", definition) for definition in await gateway.list_tools()]
    *counts, phase1 = BpeCounter().count([*map(canonical_text, listed), board.pool(Turn.ask(""))])
    small = is_small(board.catalog, settings)
    tools, tokens = len(board.catalog), sum(board.catalog.token_counts)
    chosen = choose(Caller(), Session(), settings, small=small, tools=tools, tokens=tokens)
    eager = chosen in ("eager", "native")
    return ExposureCost(
        mode="eager" if eager else "static",
        definitions={tool.name: count for tool, count in zip(listed, counts, strict=True)},
        phase1=0 if eager else phase1,
        search=0 if eager else await _mean(gateway, meta_definitions.SEARCH, _searches(catalog)),
        describe=0 if eager else await _mean(gateway, meta_definitions.DESCRIBE, _descriptions(catalog)),
    )


def _gateway(settings: Settings, board: RoutingBoard, parts: Parts) -> Gateway:
    fleet = Fleet({}, connect_timeout=1, call_timeout=1, events=parts.events, clock=parts.clock)
    return Gateway(settings, board, fleet, events=parts.events, clock=parts.clock)


async def _mean(gateway: Gateway, name: str, calls: list[dict[str, Any]]) -> float:
    texts: list[str] = []
    for arguments in calls:
        result = await gateway.call(name, arguments)
        asked = compact_json({"name": name, "arguments": arguments})
        texts.append(asked + "".join(part["text"] for part in result["content"]))
    return sum(BpeCounter().count(texts)) / max(1, len(texts))


def _searches(catalog: Catalog) -> list[dict[str, Any]]:
    return [{"query": " ".join((tool.description or tool.name).split()[:QUERY_WORDS])} for tool in _sample(catalog)]


def _descriptions(catalog: Catalog) -> list[dict[str, Any]]:
    return [{"names": [str(tool.id)]} for tool in _sample(catalog)]


def _sample(catalog: Catalog) -> list[Tool]:
    """Tools at even intervals over the catalog."""
    return list(catalog.tools[:: max(1, len(catalog) // SAMPLED)][:SAMPLED])
