"""Boards for the benchmark: the engine as users get it, with vectors kept from one run to the next."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from pegboard.catalog import Catalog
from pegboard.compose import Parts, build_routing, default_parts
from pegboard.model import ToolId
from pegboard.protocols import Encoder
from pegboard.retrieval import CachedEncoder, OnnxEncoder
from pegboard.routing_board import RoutingBoard
from pegboard.settings import RuleSettings, load_settings
from pegboard.stores import MemoryEmbeddings, MemoryEvents, SqliteEmbeddings
from pegboard.stores.sqlite.backend import EMBEDDINGS_FILE
from pegboard_bench.tax.testbeds import Testbed


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Where things are: sets, vectors that are kept (None: in memory), other encoders, installed peers.

    ``untuned`` is MiniLM as published, ``mpnet`` all-mpnet-base-v2.
    """

    data: Path | None = None
    cache: Path | None = None
    untuned: Path | None = None
    mpnet: Path | None = None
    peers: Path | None = None


@cache
def encoder(weights: Path | None, kept: Path | None) -> Encoder:
    """The encoder of the package, or one of other weights, on one thread: processes run beside each other."""
    store = MemoryEmbeddings(1_000_000) if kept is None else SqliteEmbeddings(kept / EMBEDDINGS_FILE)
    return CachedEncoder(OnnxEncoder(weights, threads=1) if weights else OnnxEncoder(threads=1), store)


def parts(place: Place, weights: Path | None = None) -> Parts:
    """Nothing is logged, and nothing of this machine's own state is read."""
    return default_parts(
        load_settings(),
        encoder=encoder(weights, place.cache),
        embeddings=MemoryEmbeddings(1_000_000),
        events=MemoryEvents(),
    )


async def board(
    testbed: Testbed, place: Place, *, weights: Path | None = None, rules: bool = True, **settings: Any
) -> RoutingBoard:
    """Warm; with the preconditions of the testbed unless they are left out."""
    wanted: tuple[RuleSettings, ...] = testbed.rules if rules else ()
    return await board_of(testbed.catalog, place, weights=weights, rules=wanted, **settings)


async def board_of(catalog: Catalog, place: Place, *, weights: Path | None = None, **settings: Any) -> RoutingBoard:
    made = build_routing(load_settings(**settings), catalog, parts=parts(place, weights))
    await made.warm()
    return made


async def board_over(testbed: Testbed, encoder: Encoder, **settings: Any) -> RoutingBoard:
    """Over another encoder, which nothing is fitted for: its cosines are taken as they are."""
    wanted = load_settings(rules=testbed.rules, **settings)
    memory = MemoryEmbeddings(1_000_000)
    made = build_routing(
        wanted, testbed.catalog, parts=default_parts(wanted, encoder=encoder, embeddings=memory, events=MemoryEvents())
    )
    await made.warm()
    return made


def tools_of(catalog: Catalog, ids: frozenset[ToolId] | tuple[ToolId, ...]) -> tuple[Any, ...]:
    """Tools in catalog order."""
    wanted = set(ids)
    return tuple(tool for tool in catalog.tools if tool.id in wanted)
