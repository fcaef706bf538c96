"""What a client would be sent with Pegboard in between: asked of the gateway itself, with no server behind it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from pegboard.board import Board
from pegboard.catalog import BpeCounter, Catalog, canonical_text, compact_json
from pegboard.catalog.ingest import tool_from_mcp
from pegboard.compose import Parts, build, default_parts
from pegboard.gateways.mcp import meta_tools
from pegboard.gateways.mcp.caller import Caller
from pegboard.gateways.mcp.exposure import choose, is_small
from pegboard.gateways.mcp.gateway import Gateway
from pegboard.model import Floats, Session, Tool, Turn
from pegboard.settings import Settings
from pegboard.stores import MemoryEmbeddings
from pegboard.upstreams import Fleet

SAMPLED = 20
"""Searches and descriptions that the mean cost of one is taken from."""
QUERY_WORDS = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class Exposed:
    """Tokens of each definition that is listed (the meta-tools, where ``mode`` is static) and of the calls to them.

    ``search`` and ``describe`` count the call and its result, as a mean.
    """

    mode: Literal["eager", "static"]
    definitions: Mapping[str, int]
    phase1: int
    search: float
    describe: float

    @property
    def tokens(self) -> int:
        """What every turn carries."""
        return sum(self.definitions.values())


class Alike:
    """An encoder to which all texts are alike: searches are asked for their size, not for what they find."""

    provider = model = "alike"
    dimensions = 1

    async def encode(self, texts: Sequence[str]) -> Floats:
        return np.ones((len(texts), 1), np.float32)


async def exposed(catalog: Catalog, settings: Settings) -> Exposed:
    """The listing, and the mean size of calls that look for tools of this catalog."""
    parts = default_parts(settings, encoder=Alike(), embeddings=MemoryEmbeddings())
    board = build(settings, catalog, parts=parts)
    gateway = _gateway(settings, board, parts)
    listed = [tool_from_mcp("pegboard", definition) for definition in await gateway.list_tools()]
    *counts, phase1 = BpeCounter().count([*map(canonical_text, listed), board.pool(Turn.ask(""))])
    small = is_small(board.catalog, settings)
    eager = choose(Caller(), Session(), settings, small=small, tools=len(board.catalog)) in ("eager", "native")
    return Exposed(
        mode="eager" if eager else "static",
        definitions={tool.name: count for tool, count in zip(listed, counts, strict=True)},
        phase1=0 if eager else phase1,
        search=0 if eager else await _mean(gateway, meta_tools.SEARCH, _searches(catalog)),
        describe=0 if eager else await _mean(gateway, meta_tools.DESCRIBE, _descriptions(catalog)),
    )


def _gateway(settings: Settings, board: Board, parts: Parts) -> Gateway:
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
    """Tools evenly over the catalog."""
    return list(catalog.tools[:: max(1, len(catalog) // SAMPLED)][:SAMPLED])
