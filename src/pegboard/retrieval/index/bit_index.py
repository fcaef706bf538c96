"""Vectors compressed in this process, for boards of a hundred thousand tools and more: nothing to install.

A search counts bits in the nearest lists, looks again at the most alike by one byte a dimension, and ranks the last
ones by their whole vectors, which are in a file. Up to a size, or if a filter leaves that few, it is exact. No change
of a tool costs more than a list of them does, however large the board is.
"""

from __future__ import annotations

import asyncio
import tempfile
import threading
import weakref
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from itertools import chain
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from pegboard.errors import StoreError
from pegboard.model import Floats, Mask, ToolId
from pegboard.operating_system import extend_file
from pegboard.protocols import Filter, Hits
from pegboard.retrieval.index.bit_lists import BitLists, Rows, grown, lowest

EXACT_UP_TO = 20_000
BY_BITS_UP_TO = 100_000
"""Rows that pass a filter, up to which the bits of all of them are compared, whatever their lists."""
PROBES = 384
"""Lists searched at once; as many more until enough rows are found that pass the filter."""
BY_BITS = 12_000
"""Rows that are looked at again by one byte a dimension, at least."""
BY_BYTES = 64
"""Rows that are ranked by their whole vectors, at least."""
NEAR_THE_CORE = 256
"""Rows whose bytes are widened at once: as many as a core's cache holds."""
MOST = 2
"""How many rows may be multiplied for each one that is wanted, before the wanted ones are copied instead."""
BLOCK = 4_096
"""Rows that are added at once, so that lists are split while they are short."""

T = TypeVar("T")


class CompressedIndex:
    """Without ``dimensions``, the first vector sets the width: an encoder may not know it before its first answer."""

    def __init__(self, dimensions: int = 0, *, exact_up_to: int = EXACT_UP_TO, probes: int = PROBES) -> None:
        self._exact_up_to = exact_up_to
        self._probes = probes
        self._row: dict[ToolId, int] = {}
        self._servers: dict[str, int] = {}
        self._of_server: defaultdict[str, set[int]] = defaultdict(set)
        self._tools: list[ToolId] = []
        self._free: list[int] = []
        self._added = 0
        self._columns = _Columns(dimensions)
        self._lists: BitLists | None = None
        self._lock = threading.Lock()

    @property
    def lists(self) -> int:
        """The number of lists; with none, every search is exact."""
        return 0 if self._lists is None else len(self._lists)

    async def add(self, ids: Sequence[ToolId], vectors: Floats) -> None:
        await self._alone(lambda: self._add(ids, vectors))

    async def remove(self, ids: Sequence[ToolId]) -> None:
        await self._alone(lambda: self._remove(ids))

    async def ids(self) -> frozenset[ToolId]:
        return frozenset(self._row)

    async def search(self, queries: Floats, k: int, where: Filter | None = None) -> list[Hits]:
        asked = np.ascontiguousarray(queries, np.float32)
        return await self._alone(lambda: [self._search(query, k, where) for query in asked])

    async def _alone(self, work: Callable[[], T]) -> T:
        """Run on a thread, one at a time."""

        def locked() -> T:
            with self._lock:
                return work()

        return await asyncio.to_thread(locked)

    def _add(self, ids: Sequence[ToolId], vectors: Floats) -> None:
        latest = {tool: place for place, tool in enumerate(ids)}
        new = [tool for tool, place in latest.items() if not self._has(tool, vectors[place])]
        self._remove(new)
        for start in range(0, len(new), BLOCK):
            some = new[start : start + BLOCK]
            self._append(some, np.ascontiguousarray(vectors[[latest[tool] for tool in some]], np.float32))

    def _append(self, tools: Sequence[ToolId], vectors: Floats) -> None:
        rows = np.array([self._free_row(tool) for tool in tools], np.int32)
        servers = [self._servers.setdefault(tool.server, len(self._servers)) for tool in tools]
        try:
            self._columns.write(rows, vectors, servers, np.arange(self._added, self._added + len(tools)))
        except StoreError:
            self._free += rows.tolist()
            raise
        self._added += len(tools)
        for tool, row in zip(tools, rows.tolist(), strict=True):
            self._row[tool] = row
            self._of_server[tool.server].add(row)
        if self._lists is not None:
            self._lists.add(rows, vectors)
        elif len(self._row) > self._exact_up_to:
            self._begin_lists()

    def _begin_lists(self) -> None:
        """Once: a board that has outgrown exact search."""
        rows = self._all_rows()
        self._lists = BitLists(
            self._columns.vectors[rows].mean(axis=0),
            self._columns.approximate,
            lambda some: self._columns.alive[some],
            lambda some: self._free.extend(some.tolist()),
        )
        for start in range(0, len(rows), BLOCK):
            some = rows[start : start + BLOCK]
            self._lists.add(some, self._columns.vectors[some])

    def _free_row(self, tool: ToolId) -> int:
        if not self._free:
            self._tools.append(tool)
            return len(self._tools) - 1
        row = self._free.pop()
        self._tools[row] = tool
        return row

    def _remove(self, ids: Sequence[ToolId]) -> None:
        rows = [self._row.pop(tool) for tool in dict.fromkeys(ids) if tool in self._row]
        if not rows:
            return
        for row in rows:
            server = self._tools[row].server
            self._of_server[server].discard(row)
            if not self._of_server[server]:
                del self._of_server[server]
        gone = np.array(rows, np.int32)
        self._columns.alive[gone] = False
        if self._lists is not None:
            self._lists.remove(gone)
        else:
            self._free += rows

    def _has(self, tool: ToolId, vector: Floats) -> bool:
        row = self._row.get(tool)
        return row is not None and np.array_equal(self._columns.vectors[row], vector)

    def _all_rows(self) -> Rows:
        return np.flatnonzero(self._columns.alive[: len(self._tools)]).astype(np.int32)

    def _search(self, query: Floats, k: int, where: Filter | None) -> Hits:
        if not self._row or k < 1:
            return []
        rows = self._few(where) if self._lists is None else self._near(self._lists, query, k, where)
        scores = self._columns.products(rows, query)
        best = np.flatnonzero(scores >= np.partition(scores, -k)[-k]) if k < len(rows) else np.arange(len(rows))
        best = best[np.lexsort((self._columns.order[rows[best]], -scores[best]))][:k]
        return [(self._tools[rows[place]], float(scores[place])) for place in best]

    def _few(self, where: Filter | None) -> Rows:
        """All rows that pass."""
        if where is None:
            return self._all_rows()
        if where.only is not None:
            rows = self._rows_of(where.only)
        elif where.servers is not None:
            named = (self._of_server.get(server, ()) for server in where.servers)
            rows = np.fromiter(chain.from_iterable(named), np.int32)
        else:
            rows = self._all_rows()
        passes = self._passes(where)
        return rows if passes is None else rows[passes(rows)]

    def _most(self, where: Filter | None) -> int:
        """How many rows can pass at most."""
        if where is not None and where.only is not None:
            return len(where.only)
        if where is not None and where.servers is not None:
            return sum(len(self._of_server.get(server, ())) for server in where.servers)
        return len(self._row)

    def _near(self, lists: BitLists, query: Floats, k: int, where: Filter | None) -> Rows:
        """All rows that pass if they are few, else the likeliest in the nearest lists."""
        could_pass = self._most(where)
        if could_pass <= self._exact_up_to:
            return self._few(where)
        wanted = max(BY_BITS, 4 * k)
        if could_pass <= min(BY_BITS_UP_TO, len(self._row) - 1):
            rows = self._few(where)
            differ = lists.differing_rows(query, rows)
        else:
            rows, differ = self._by_lists(lists, query, k if where is None else wanted, where)
        if len(rows) > wanted:
            rows = rows[lowest(differ, wanted)]
        rows = np.sort(rows)  # memory is read in order
        most = max(BY_BYTES, 2 * k)
        if len(rows) <= most:
            return rows
        return rows[np.argpartition(-self._columns.about(rows, query), most)[:most]]

    def _by_lists(
        self, lists: BitLists, query: Floats, enough: int, where: Filter | None
    ) -> tuple[Rows, NDArray[np.uint16]]:
        """Rows of the nearest lists that pass, and the number of bits in which each differs from the query."""
        passes, nearest = self._passes(where), lists.nearest(query)
        found, distances, count = [], [], 0
        for start in range(0, len(nearest), self._probes):
            some = nearest[start : start + self._probes]
            rows, differ = lists.differing(query, some)
            if passes is not None or any(each.gone for each in some):
                passing = self._columns.alive[rows]
                passing &= True if passes is None else passes(rows)
                rows, differ = rows[passing], differ[passing]
            found.append(rows)
            distances.append(differ)
            count += len(rows)
            if count >= enough:
                break
        return np.concatenate(found), np.concatenate(distances)

    def _passes(self, where: Filter | None) -> Callable[[Rows], Mask] | None:
        """Which of some rows pass; what is the same for all rows is worked out once."""
        if where is None:
            return None
        tests: list[Callable[[Rows], Mask]] = []
        if where.servers is not None:
            allowed = np.zeros(len(self._servers), np.bool_)
            allowed[[number for server in where.servers if (number := self._servers.get(server)) is not None]] = True
            tests.append(lambda rows: allowed[self._columns.server[rows]])
        if where.only is not None:
            only = self._rows_of(where.only)
            tests.append(lambda rows: np.isin(rows, only))
        if where.excluded:
            excluded = self._rows_of(where.excluded)
            tests.append(lambda rows: ~np.isin(rows, excluded))
        return lambda rows: np.logical_and.reduce([np.ones(len(rows), np.bool_), *(test(rows) for test in tests)])

    def _rows_of(self, tools: Iterable[ToolId]) -> Rows:
        return np.array([self._row[tool] for tool in tools if tool in self._row], np.int32)


class _Columns:
    """What is kept of each row: the whole vector, in a file of its own that ends with the process; its bytes and their
    scale; the number of its server; when it was added; whether it is still there."""

    def __init__(self, dimensions: int) -> None:
        self._file = tempfile.TemporaryFile(prefix="pegboard-vectors-")  # noqa: SIM115 - as long as the index
        weakref.finalize(self, self._file.close)
        self.vectors: Floats = np.zeros((0, dimensions), np.float32)
        self.alive: Mask = np.zeros(0, np.bool_)
        self.server: Rows = np.zeros(0, np.int32)
        self.order: NDArray[np.int64] = np.zeros(0, np.int64)
        self._bytes: NDArray[np.int8] = np.zeros((0, dimensions), np.int8)
        self._scale: Floats = np.zeros(0, np.float32)

    def write(self, rows: Rows, vectors: Floats, servers: Sequence[int], order: NDArray[np.int64]) -> None:
        if not len(rows):
            return
        self._room(int(rows.max()) + 1, vectors.shape[1])
        scale = np.maximum(np.abs(vectors).max(axis=1), np.float32(1e-12)) / np.float32(127)
        self.vectors[rows] = vectors
        self._bytes[rows] = np.rint(vectors / scale[:, None]).astype(np.int8)
        self._scale[rows] = scale
        self.server[rows] = servers
        self.order[rows] = order
        self.alive[rows] = True

    def approximate(self, rows: Rows) -> Floats:
        """The vectors as their bytes tell them."""
        return np.asarray(self._bytes[rows].astype(np.float32) * self._scale[rows, None])

    def about(self, rows: Rows, query: Floats) -> Floats:
        """The inner products with the query, as the bytes tell them."""
        parts = [rows[start : start + NEAR_THE_CORE] for start in range(0, len(rows), NEAR_THE_CORE)]
        products = [self._bytes[part].astype(np.float32) @ query for part in parts]
        return np.asarray(np.concatenate(products) * self._scale[rows])

    def products(self, rows: Rows, query: Floats) -> Floats:
        """The inner products with the query; of most rows without a copy of their vectors."""
        last = int(rows.max()) + 1 if len(rows) else 0
        if last <= MOST * len(rows):
            return np.asarray((self.vectors[:last] @ query)[rows])
        return np.asarray(self.vectors[rows] @ query)

    def _room(self, length: int, dimensions: int) -> None:
        if length <= len(self.alive):
            return
        before = self._bytes if self._bytes.shape[1] else np.zeros((0, dimensions), np.int8)
        wider = grown(before, length)
        size = wider.size * 4
        try:
            extend_file(self._file.fileno(), size)
        except OSError as error:
            raise StoreError(
                f"There is no room for {size:,} bytes of vectors in {tempfile.gettempdir()}: {error.strerror}.",
                remedy="Free some, or set TMPDIR to a folder on another disk.",
            ) from error
        self._bytes = wider
        self.vectors = np.memmap(self._file, np.float32, "r+", shape=wider.shape)
        self.alive = grown(self.alive, length)
        self.server = grown(self.server, length)
        self.order = grown(self.order, length)
        self._scale = grown(self._scale, length)
