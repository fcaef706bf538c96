"""Memory of thousands of tenants on one store, beside that of their distinct tools; and whose tools searches find."""

from __future__ import annotations

import asyncio
import gc
import json
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from pegboard.catalog import Catalog
from pegboard.compose import build_routing, default_parts
from pegboard.library.matches import ToolMatches
from pegboard.model import Server, Tool
from pegboard.routing_board import RoutingBoard
from pegboard.settings import load_settings
from pegboard.tenants import TenantBoards
from pegboard_bench.scale.measure import MEGABYTE, anonymous
from pegboard_bench.tenants.world import (
    PRIVATE_SERVERS,
    KnownEncoder,
    NoEmbeddings,
    World,
    private_server,
    read_world,
)

SHARED = 0.7
LIMIT = 20
"""Results of a search."""
EVERY = 5
"""Tenants of which one searches; the tools of all are there."""
APART = 10
"""Tenants that are measured with a board of their own each, which shares nothing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """Megabytes, each more than the one before: of the distinct tools, with all views, with all boards that are ready
    after ``results`` results; milliseconds of searches; how many results were another tenant's tool."""

    distinct: int
    listed: int
    import_s: float
    distinct_mb: float
    views_mb: float
    all_mb: float
    hot_boards: int
    apart_mb: float
    results: int
    foreign: int
    empty: int
    first_ms: Sequence[float]
    search_ms: Sequence[float]


@dataclass(frozen=True, slots=True, kw_only=True)
class Sizes:
    tenants: int
    tools: int
    results: int
    seed: int

    @property
    def shared(self) -> int:
        """Tools of a tenant that are public."""
        return round(SHARED * self.tools)

    @property
    def private(self) -> int:
        """Tools of each of a tenant's own servers."""
        return (self.tools - self.shared) // len(PRIVATE_SERVERS)


def named(number: int) -> str:
    return f"tenant {number:05}"


async def filled(boards: TenantBoards, world: World, encoder: KnownEncoder, sizes: Sizes) -> None:
    """Publish every real server, and import the private tools of every tenant."""
    for server, tools in world.public:
        encoder.tell([(tool, world.catalog.position[tool.id]) for tool in tools], moved=False)
        await boards.publish(server, tools)
    for tenant in map(named, range(sizes.tenants)):
        for name in PRIVATE_SERVERS:
            made = world.private(tenant, name, sizes.private)
            encoder.tell(made, moved=True)
            await boards.import_tools(tenant, private_server(name), [tool for tool, _ in made])
    encoder.known = {}


async def measure(data: Path, cache: Path, sizes: Sizes) -> Measured:
    world = await read_world(data, cache)
    encoder = KnownEncoder(world, sizes.seed)
    boards = TenantBoards(encoder=encoder, embeddings=NoEmbeddings())
    await encoder.encode(["loaded before memory is measured"])
    gc.collect()
    before, started = anonymous(), time.perf_counter()
    await filled(boards, world, encoder, sizes)
    import_s = time.perf_counter() - started
    gc.collect()
    distinct = anonymous()
    for tenant in map(named, range(sizes.tenants)):
        boards.use(tenant, world.used(tenant, sizes.shared))
    gc.collect()
    views = anonymous()
    asked = await searched(boards, world, sizes)
    gc.collect()
    everything = anonymous()
    tools = sum([len(boards.tools_of(named(number))) for number in range(0, sizes.tenants, 50)]) * 50
    hot = boards.hot
    await boards.close()
    return Measured(
        distinct=boards.definitions,
        listed=tools,
        import_s=import_s,
        distinct_mb=(distinct - before) / MEGABYTE,
        views_mb=(views - before) / MEGABYTE,
        all_mb=(everything - before) / MEGABYTE,
        hot_boards=hot,
        apart_mb=await apart(world, encoder, sizes),
        results=asked.results,
        foreign=asked.foreign,
        empty=asked.empty,
        first_ms=asked.first_ms,
        search_ms=asked.search_ms,
    )


def measured(data: Path, cache: Path, sizes: Sizes) -> Measured:
    return asyncio.run(measure(data, cache, sizes))


@dataclass(slots=True, kw_only=True)
class Asked:
    results: int = 0
    foreign: int = 0
    empty: int = 0
    first_ms: list[float]
    search_ms: list[float]


async def searched(boards: TenantBoards, world: World, sizes: Sizes) -> Asked:
    """Searches of every `EVERY`th tenant in turn, as many for each as are needed for so many results."""
    asked, number = Asked(first_ms=[], search_ms=[]), 0
    tenants = range(0, sizes.tenants, EVERY)
    each = -(-sizes.results // (len(tenants) * LIMIT)) + 1  # a search of a small server finds fewer
    for tenant in map(named, tenants):
        uses = frozenset(world.used(tenant, sizes.shared))
        for times in range(each):
            request = world.requests[number % len(world.requests)]
            number += 1
            started = time.perf_counter()
            found = await boards.search(tenant, request, limit=LIMIT)
            (asked.search_ms if times else asked.first_ms).append((time.perf_counter() - started) * 1000)
            matches = found.tools or found.nearest
            asked.results += len(matches)
            asked.empty += not matches
            asked.foreign += foreign(found, tenant, uses)
    return asked


def foreign(found: ToolMatches, tenant: str, uses: frozenset[str]) -> int:
    """How many of the tools found are not the tenant's: on a public server that it does not use, or another's own."""
    return sum(
        not match.description.startswith(f"For {tenant}, ")
        if match.tool.server in PRIVATE_SERVERS
        else match.tool.server not in uses
        for match in (*found.tools, *found.nearest)
    )


async def apart(world: World, encoder: KnownEncoder, sizes: Sizes) -> float:
    """Megabytes of one tenant's board that shares nothing with others, on average."""
    gc.collect()
    before, boards = anonymous(), list[RoutingBoard]()
    for tenant in map(named, range(APART)):
        groups: list[tuple[Server, Sequence[Tool]]] = []
        told: list[tuple[Tool, int]] = []
        for name in world.used(tenant, sizes.shared):
            tools = [_copy(tool) for tool in world.catalog.of_server(name)]
            groups.append((world.catalog.servers[name], tools))
            told += [(tool, world.catalog.position[tool.id]) for tool in tools]
        for name in PRIVATE_SERVERS:
            made = world.private(tenant, name, sizes.private)
            groups.append((private_server(name), [tool for tool, _ in made]))
            told += made
        encoder.tell(told, moved=False)
        parts = default_parts(load_settings(), encoder=encoder, embeddings=NoEmbeddings())
        board = build_routing(load_settings(), Catalog.build(groups), parts=parts)
        await board.warm()
        await board.search_index()
        boards.append(board)
    encoder.known = {}
    gc.collect()
    return (anonymous() - before) / MEGABYTE / len(boards)


def _copy(tool: Tool) -> Tool:
    definition = json.loads(json.dumps(tool.definition))
    return replace(tool, definition=definition, input_schema=definition.get("inputSchema"))
