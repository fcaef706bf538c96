"""What one tenant's import, and one tenant's flood of requests, cost the searches of the others."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Coroutine, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from pegboard.model import Floats, Tool, ToolId
from pegboard.protocols import Embeddings
from pegboard.retrieval.encoders.encoder_cache import embedding_key
from pegboard.settings import load_settings
from pegboard.stores import SqliteEmbeddings
from pegboard.stores.sqlite.backend import EMBEDDINGS_FILE
from pegboard.tenants import TenantBoards
from pegboard.tenants.tenant_boards import OwnEmbeddings
from pegboard_bench.tenants.measure import Sizes, named
from pegboard_bench.tenants.world import PRIVATE_SERVERS, KnownEncoder, World, private_server, read_world

NEIGHBOURS = 20
"""Tenants that search; one more of the same size has the flood."""
RATE = 5
"""Their searches a second, in all."""
ROUNDS = 10
"""Parts of the import, each on a server of its own, with a quiet time before it."""
FLOOD = 32
"""Requests that the flood of one tenant has under way at any time."""


@dataclass(slots=True, kw_only=True)
class Phase:
    """Milliseconds of the neighbours' searches from when each was due, while something else went on for ``seconds``."""

    seconds: float = 0.0
    times: list[float] = field(default_factory=list)

    def add(self, other: Phase) -> None:
        self.seconds += other.seconds
        self.times += other.times


@dataclass(frozen=True, slots=True, kw_only=True)
class Disturbed:
    quiet: Phase
    importing: Phase
    building: Phase
    flooded: Phase
    flood_answers: int


class Neighbours:
    """Searches at fixed times, whether or not those before are answered."""

    def __init__(self, boards: TenantBoards, requests: Sequence[str]) -> None:
        self._boards = boards
        self._requests = requests
        self._number = 0

    async def during(self, what: asyncio.Task[object]) -> Phase:
        """Search until this is done."""
        phase, began, due = Phase(), time.perf_counter(), 0.0
        under_way: set[asyncio.Task[None]] = set()
        while not what.done():
            task = asyncio.create_task(self._search(phase, began + due))
            under_way.add(task)
            task.add_done_callback(under_way.discard)
            due += 1 / RATE
            await asyncio.sleep(max(0.0, began + due - time.perf_counter()))
        await asyncio.gather(*under_way)
        phase.seconds = time.perf_counter() - began
        await what
        return phase

    async def _search(self, phase: Phase, due: float) -> None:
        self._number += 1
        request = self._requests[self._number % len(self._requests)]
        await self._boards.search(named(self._number % NEIGHBOURS), f"{request} {self._number}")
        phase.times.append((time.perf_counter() - due) * 1000)


async def measure(data: Path, cache: Path, sizes: Sizes, imported: int, quiet_s: float, folder: Path) -> Disturbed:
    world = await read_world(data, cache)
    written = SqliteEmbeddings(folder / EMBEDDINGS_FILE)
    kept = WarmStart(SqliteEmbeddings(cache / EMBEDDINGS_FILE), written)
    boards = TenantBoards(load_settings(cache_dir=folder, state_dir=folder), embeddings=kept)
    await fill(boards, world, sizes, kept)
    neighbours = Neighbours(boards, world.requests)
    await neighbours.during(_sleep(2.0))  # what is loaded with the first searches
    large = [tool for tool, _ in world.private("importer", "bulk", imported)]
    quiet, importing = Phase(), Phase()
    for number, start in enumerate(range(0, imported, -(-imported // ROUNDS))):  # in turns: the machine is shared
        some = [_on(f"bulk {number}", tool) for tool in large[start : start - (-imported // ROUNDS)]]
        quiet.add(await neighbours.during(_sleep(quiet_s / ROUNDS)))
        importing.add(await neighbours.during(_task(boards.import_tools("importer", f"bulk {number}", some))))
    building = await neighbours.during(_task(boards.search("importer", large[0].description)))
    flooded, answers = await flood(boards, neighbours, world, quiet_s)
    await boards.close()
    return Disturbed(quiet=quiet, importing=importing, building=building, flooded=flooded, flood_answers=answers)


def measured(data: Path, cache: Path, sizes: Sizes, imported: int, quiet_s: float, folder: Path) -> Disturbed:
    return asyncio.run(measure(data, cache, sizes, imported, quiet_s, folder))


class WarmStart:
    """A store of embeddings that already has the real tools' and is written to elsewhere: the next run has as much."""

    def __init__(self, known: Embeddings, written: Embeddings) -> None:
        self._known = known
        self._written = written

    async def get(self, keys: Sequence[str]) -> Mapping[str, Floats]:
        found = await self._written.get(keys)
        return {**await self._known.get([key for key in keys if key not in found]), **found}

    async def put(self, vectors: Mapping[str, Floats]) -> None:
        await self._written.put(vectors)


async def fill(boards: TenantBoards, world: World, sizes: Sizes, kept: Embeddings) -> None:
    """What the neighbours have; its vectors are in the store of embeddings, those of the import are not."""
    encoder = KnownEncoder(world, sizes.seed)
    for server, tools in world.public:
        await boards.publish(server, tools)
    for tenant in map(named, range(NEIGHBOURS + 1)):
        for name in PRIVATE_SERVERS:
            made = world.private(tenant, name, sizes.private)
            encoder.tell(made, moved=True)
            own = {embedding_key(encoder.provider, encoder.model, text): row for text, row in encoder.known.items()}
            await OwnEmbeddings(kept, tenant).put(own)
            await boards.import_tools(tenant, private_server(name), [tool for tool, _ in made])
        boards.use(tenant, world.used(tenant, sizes.shared))
        await boards.board(tenant)


async def flood(boards: TenantBoards, neighbours: Neighbours, world: World, seconds: float) -> tuple[Phase, int]:
    """The neighbours' searches while one tenant of the same size has many under way, and how many it got answered."""
    until, answers = time.perf_counter() + seconds, 0

    async def ask(number: int) -> None:
        nonlocal answers
        while time.perf_counter() < until:
            await boards.search(
                named(NEIGHBOURS), f"{world.requests[answers % len(world.requests)]} {answers} {number}"
            )
            answers += 1

    async def flooding() -> None:
        await asyncio.gather(*map(ask, range(FLOOD)))

    phase = await neighbours.during(_task(flooding()))
    return phase, answers


def _on(server: str, tool: Tool) -> Tool:
    return replace(tool, id=ToolId(server, tool.name))


def _sleep(seconds: float) -> asyncio.Task[object]:
    return _task(asyncio.sleep(seconds))


def _task(work: Coroutine[Any, Any, object]) -> asyncio.Task[object]:
    return asyncio.create_task(work)
