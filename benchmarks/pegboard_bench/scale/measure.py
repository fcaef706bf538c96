"""One size of board: building, searching and changing a `CompressedIndex`, and its recall of the exact answer."""

from __future__ import annotations

import asyncio
import gc
import multiprocessing
import re
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from pegboard.model import Floats, ToolId
from pegboard.protocols import Filter
from pegboard.retrieval.index.bit_index import CompressedIndex
from pegboard.retrieval.index.exact import best_places
from pegboard_bench.index.vectors import NOISE, Vectors

K = 10
BLOCK = 20_000
CHANGED = 50
"""Tools that are added, and removed, one at a time."""
BATCH = 20
"""Tools of a sustained change: what one server lists anew."""
CHANGES = 1_000
SEARCHES = 50
"""A second, while both go on."""
MEGABYTE = 1e6


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """Seconds, megabytes and milliseconds; ``late`` are seconds behind the schedule at the end of the sustained run."""

    build_s: float
    memory_mb: float
    file_mb: float
    lists: int
    recall: float
    recall_few_servers: float
    search_ms: Sequence[float]
    few_servers_ms: Sequence[float]
    add_ms: Sequence[float]
    remove_ms: Sequence[float]
    add_alone_ms: Sequence[float]
    remove_alone_ms: Sequence[float]
    sustained_ms: Sequence[float]
    late_s: float


def blocks(models: Vectors, size: int, seed: int) -> Iterator[tuple[list[ToolId], Floats]]:
    """As many tools as ``size``, block by block: the real ones, then copies, each moved off its model."""
    draw, count = np.random.default_rng(seed), len(models.rows)
    for start in range(0, size, BLOCK):
        places = np.arange(start, min(size, start + BLOCK))
        rows = models.rows[places % count].copy()
        moved = draw.standard_normal(rows.shape, np.float32) * (places >= count)[:, None]
        moved *= NOISE / np.maximum(np.linalg.norm(moved, axis=1, keepdims=True), 1e-12)
        rows += moved
        rows /= np.linalg.norm(rows, axis=1, keepdims=True)
        yield [named(models.ids[place % count], place // count) for place in places.tolist()], rows


def named(model: ToolId, copy: int) -> ToolId:
    return model if not copy else ToolId(f"{model.server} {copy}", model.name)


class Oracle:
    """The exact ten of each query, kept while blocks of tools go by."""

    def __init__(self, queries: Floats) -> None:
        self._queries = queries
        self._best: list[list[tuple[float, ToolId]]] = [[] for _ in queries]

    def see(self, ids: Sequence[ToolId], rows: Floats) -> None:
        for best, scores in zip(self._best, self._queries @ rows.T, strict=True):
            best += [(float(scores[place]), ids[place]) for place in best_places(scores, K)]
            best.sort(key=lambda each: -each[0])
            del best[K:]

    def recall(self, found: Sequence[Sequence[ToolId]]) -> float:
        """The mean share of them that was found."""
        shares = [
            len({tool for _, tool in best} & set(tools)) / len(best)
            for best, tools in zip(self._best, found, strict=True)
        ]
        return float(np.mean(shares))


def measured_apart(models: Vectors, size: int, seed: int, sustained_s: float) -> Measured:
    """In a process of its own, so that its memory is its own."""
    with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn")) as pool:
        return pool.submit(_measured, models, size, seed, sustained_s).result()


def _measured(models: Vectors, size: int, seed: int, sustained_s: float) -> Measured:
    return asyncio.run(measure(models, size, seed, sustained_s))


async def measure(models: Vectors, size: int, seed: int, sustained_s: float) -> Measured:
    gc.collect()
    before = anonymous()
    index, everywhere, few = CompressedIndex(), Oracle(models.queries), Oracle(models.queries)
    servers = frozenset(server for place, server in enumerate(servers_of(models, size)) if place % 20 == 0)
    built = 0.0
    for ids, rows in blocks(models, size, seed):
        started = time.perf_counter()
        await index.add(ids, rows)
        built += time.perf_counter() - started
        everywhere.see(ids, rows)
        kept = [place for place, tool in enumerate(ids) if tool.server in servers]
        few.see([ids[place] for place in kept], rows[kept])
    gc.collect()
    memory = anonymous() - before
    found, search_ms = await searched(index, models.queries, None)
    found_few, few_ms = await searched(index, models.queries, Filter(servers=servers))
    changes = await changed(index, models, seed)
    sustained, late = await changed_for(index, models, sustained_s, seed)
    return Measured(
        build_s=built,
        memory_mb=memory / MEGABYTE,
        file_mb=size * models.rows.shape[1] * 4 / MEGABYTE,
        lists=index.lists,
        recall=everywhere.recall(found),
        recall_few_servers=few.recall(found_few),
        search_ms=search_ms,
        few_servers_ms=few_ms,
        add_ms=changes.add_ms,
        remove_ms=changes.remove_ms,
        add_alone_ms=changes.add_alone_ms,
        remove_alone_ms=changes.remove_alone_ms,
        sustained_ms=sustained,
        late_s=late,
    )


def servers_of(models: Vectors, size: int) -> list[str]:
    ids = [named(models.ids[place % len(models.ids)], place // len(models.ids)) for place in range(size)]
    return list(dict.fromkeys(tool.server for tool in ids))


async def searched(
    index: CompressedIndex, queries: Floats, where: Filter | None
) -> tuple[list[list[ToolId]], list[float]]:
    """What was found, and the milliseconds of each search."""
    await index.search(queries[:1], K, where)
    found, times = [], []
    for query in queries:
        started = time.perf_counter()
        (hits,) = await index.search(query[None], K, where)
        times.append((time.perf_counter() - started) * 1000)
        found.append([tool for tool, _ in hits])
    return found, times


@dataclass(frozen=True, slots=True, kw_only=True)
class Changes:
    """Milliseconds until a new tool is found and until a removed one no longer is, and of the change alone, without the
    search that shows it."""

    add_ms: list[float]
    remove_ms: list[float]
    add_alone_ms: list[float]
    remove_alone_ms: list[float]


async def changed(index: CompressedIndex, models: Vectors, seed: int) -> Changes:
    draw = np.random.default_rng(seed + 1)
    changes = Changes(add_ms=[], remove_ms=[], add_alone_ms=[], remove_alone_ms=[])
    for number in range(CHANGED):
        tool, vector = ToolId("new", f"tool {number}"), unit(draw, 1, models.rows.shape[1])
        started = time.perf_counter()
        await index.add([tool], vector)
        changes.add_alone_ms.append((time.perf_counter() - started) * 1000)
        expect((await index.search(vector, 1))[0][0][0] == tool, f"{tool} is found")
        changes.add_ms.append((time.perf_counter() - started) * 1000)
        started = time.perf_counter()
        await index.remove([tool])
        changes.remove_alone_ms.append((time.perf_counter() - started) * 1000)
        expect(tool not in dict((await index.search(vector, K))[0]), f"{tool} is gone")
        changes.remove_ms.append((time.perf_counter() - started) * 1000)
    return changes


async def changed_for(index: CompressedIndex, models: Vectors, seconds: float, seed: int) -> tuple[list[float], float]:
    """Milliseconds of searches, `SEARCHES` a second, while `CHANGES` tools a second come and go; and how far behind its
    schedule the run ended, seconds."""
    draw = np.random.default_rng(seed + 2)
    rounds = int(seconds * CHANGES / (2 * BATCH))
    pause = 2 * BATCH / CHANGES
    times: list[float] = []
    per_round = SEARCHES * pause
    began, asked = time.perf_counter(), 0.0
    for number in range(rounds):
        ids = [ToolId(f"changing {number}", f"tool {place}") for place in range(BATCH)]
        await index.add(ids, unit(draw, BATCH, models.rows.shape[1]))
        asked += per_round
        while asked >= 1:
            asked -= 1
            query = models.queries[len(times) % len(models.queries)]
            started = time.perf_counter()
            await index.search(query[None], K)
            times.append((time.perf_counter() - started) * 1000)
        await index.remove(ids)
        await asyncio.sleep(max(0.0, began + (number + 1) * pause - time.perf_counter()))
    return times, max(0.0, time.perf_counter() - began - rounds * pause)


def expect(holds: bool, what: str) -> None:
    if not holds:
        raise RuntimeError(f"The index does not show its changes: expected that {what}.")


def unit(draw: np.random.Generator, count: int, dimensions: int) -> Floats:
    rows = draw.standard_normal((count, dimensions), np.float32)
    return np.asarray(rows / np.linalg.norm(rows, axis=1, keepdims=True), np.float32)


def anonymous() -> int:
    """Bytes of this process's memory that are no file's."""
    found = re.search(r"RssAnon:\s+(\d+) kB", Path("/proc/self/status").read_text("utf-8"))
    return int(found.group(1)) * 1024 if found else 0
