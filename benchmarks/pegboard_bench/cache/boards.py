"""The testbeds: tools with their tokens, and for each intent what it needs and what the router makes of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from pegboard.catalog import Catalog
from pegboard.catalog.tokens import BpeCounter, canonical_text
from pegboard.compose import Parts, build_routing
from pegboard.evaluation.datasets import Query, read_set
from pegboard.routing.pool import summary_pool
from pegboard.routing_board import RoutingBoard
from pegboard.settings import Settings
from pegboard_bench.synthetic import synthetic_catalog

PROFILE = "hybrid"
POOL = 1000
"""Tokens of the summary pool at most, as in the profile."""
SEARCH_POOL = 600
"""The same for the search for deferred tools, as in the settings."""
CALL_TOOL = 130
"""Tokens of the definition of `call_tool(name, arguments)`, with a sentence on the pool."""
NEXT_BEST = 8
"""Tools beyond the relevant ones that over-provisioning may take."""
INTENTS = 40


@dataclass(frozen=True, slots=True, kw_only=True)
class Intent:
    """Places in the catalog: what serves the intent, what the router sends for it, and the next best."""

    needed: frozenset[int]
    relevant: tuple[int, ...]
    likely: tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolBoard:
    """``tokens`` of each tool as it is sent; ``constant`` those of `call_tool` with the summary pool, ``search`` those
    of the gateway's search for deferred tools with its own."""

    name: str
    tokens: tuple[int, ...]
    constant: int
    intents: tuple[Intent, ...]
    search: int = CALL_TOOL


async def real(folder: Path, settings: Settings, parts: Parts) -> ToolBoard:
    """A labelled set of real tools and requests."""
    dataset = read_set(folder)
    return await _testbed(folder.name, dataset.catalog, dataset.queries, settings, parts)


async def synthetic(size: int, settings: Settings, parts: Parts, seed: int) -> ToolBoard:
    """Generated tools, each asked for by its words: the router is nearly always right, what counts here is the bill."""
    catalog = synthetic_catalog(size, seed)
    step = max(size // INTENTS, 1)
    queries = [
        Query(id=tool.name, text=f"Please {tool.name.replace('_', ' ')} number 7", relevant=(tool.id,))
        for tool in catalog.tools[::step]
    ]
    return await _testbed(f"synthetic{size}", catalog, queries[:INTENTS], settings, parts)


async def _testbed(
    name: str, catalog: Catalog, queries: Sequence[Query], settings: Settings, parts: Parts
) -> ToolBoard:
    board = build_routing(settings.model_copy(update={"profile": PROFILE}), catalog, parts=parts)
    await board.warm()
    counter = BpeCounter()
    pool = summary_pool(catalog.tools, catalog.servers, counter, POOL)
    return ToolBoard(
        name=name,
        tokens=tuple(counter.count([canonical_text(tool) for tool in catalog.tools])),
        constant=CALL_TOOL + pool.tokens,
        search=CALL_TOOL + summary_pool(catalog.tools, catalog.servers, counter, SEARCH_POOL).tokens,
        intents=tuple([await _intent(board, query) for query in queries]),
    )


async def _intent(board: RoutingBoard, query: Query) -> Intent:
    places = {tool.id: place for place, tool in enumerate(board.catalog.tools)}
    active = set((await board.route(query.text)).active)
    ranked = [candidate.tool for candidate in await board.rank(query.text)]
    needed = (*query.relevant, *(group[0] for group in query.any_of))
    return Intent(
        needed=frozenset(places[tool] for tool in needed),
        relevant=tuple(places[tool] for tool in ranked if tool in active),
        likely=tuple(places[tool] for tool in ranked if tool not in active)[:NEXT_BEST],
    )
