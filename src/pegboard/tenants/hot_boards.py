"""Boards of the tenants that were at work last, built from rows of the shared store when somebody asks."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from itertools import chain

import numpy as np

from pegboard.catalog import Catalog
from pegboard.compose import Parts, build_routing
from pegboard.fair_queue import FairQueue
from pegboard.model import Floats, Server, Tool
from pegboard.protocols import Encoder, VectorIndex
from pegboard.retrieval import Retriever
from pegboard.retrieval.index_thread import LARGE
from pegboard.retrieval.tool_texts import server_profile
from pegboard.routing_board import RoutingBoard
from pegboard.settings import Settings
from pegboard.shared_indexes import Encoders, SharedIndexes
from pegboard.tenants.definition_store import DefinitionStore, ServerRows
from pegboard.tenants.quick_turns import TURNS

View = tuple[ServerRows, ...]


class HotBoards:
    """Boards over views of a store, at most ``most_tools`` tools in all, or one board; the least recently used goes.

    A board has its own words, its own statistics of them and its own vectors, taken from the store: it ranks to the
    last bit as if no other tenant existed.
    """

    def __init__(self, settings: Settings, parts: Parts, store: DefinitionStore, most_tools: int) -> None:
        self._settings = settings
        self._parts = replace(parts, fallback=None, learner=None, index=_in_memory, fallback_index=_in_memory)
        self._store = store
        self._most_tools = most_tools
        self._boards: OrderedDict[str, tuple[View, RoutingBoard]] = OrderedDict()
        self._tools = 0
        self._caches = SharedIndexes()
        self._small, self._large = FairQueue(1), FairQueue(1)  # no small board waits for a large one

    def __len__(self) -> int:
        return len(self._boards)

    @property
    def tools(self) -> int:
        """Tools of all boards that are built, each counted as often as a board has it."""
        return self._tools

    async def of(self, tenant: str, view: View) -> RoutingBoard:
        """The board of a tenant's view, which takes a fraction of a second if it was not used lately."""
        if (board := self._known(tenant, view)) is not None:
            return board
        line = self._large if _size(view) >= LARGE else self._small
        with self._held(view):
            async with line.place(tenant):
                if (board := self._known(tenant, view)) is not None:
                    return board
                board = await self._built(view)
        self._remember(tenant, view, board)
        return board

    def forget(self, tenant: str) -> None:
        """Drop the board of a tenant."""
        if tenant in self._boards:
            self._tools -= _size(self._boards.pop(tenant)[0])

    def _known(self, tenant: str, view: View) -> RoutingBoard | None:
        known = self._boards.get(tenant)
        if known is None or known[0] != view:
            return None
        self._boards.move_to_end(tenant)
        return known[1]

    def _remember(self, tenant: str, view: View, board: RoutingBoard) -> None:
        self.forget(tenant)
        self._boards[tenant] = view, board
        self._tools += _size(view)
        while self._tools > self._most_tools and len(self._boards) > 1:
            self.forget(next(iter(self._boards)))

    @contextmanager
    def _held(self, view: View) -> Iterator[None]:
        """Within it no row of a view becomes another tenant's, whatever is removed or listed anew."""
        for each in view:
            self._store.retain(each.rows)
        try:
            yield
        finally:
            for each in view:
                self._store.release(each.rows)

    async def _built(self, view: View) -> RoutingBoard:
        with TURNS.within():
            board = await asyncio.shield(self._read(view))
            await board.warm()
            await board.search_index()
        return board

    async def _read(self, view: View) -> RoutingBoard:
        """The thread goes on after who asked has left, and holds the rows until it ends."""
        with self._held(view):
            return await asyncio.to_thread(self._made, view)

    def _made(self, view: View) -> RoutingBoard:
        groups: list[tuple[Server, Sequence[Tool]]] = [(each.server, self._store.tools(each)) for each in view]
        counts = chain.from_iterable(self._store.tokens(each) for each in view)
        catalog = Catalog.build(groups).with_token_counts(list(counts))
        vectors = [self._store.vectors(each) for each in view]
        known = KnownVectors(
            self._caches,
            np.concatenate(vectors) if vectors else np.zeros((0, self._parts.encoder.dimensions), np.float32),
            {server_profile(each.server): each.profile for each in view},
        )
        return build_routing(self._settings, catalog, parts=self._parts, shared=known)


class KnownVectors(SharedIndexes):
    """The vectors that a board's tools have already; caches of the encoder are those of all boards."""

    def __init__(self, caches: SharedIndexes, rows: Floats, profiles: Mapping[str, Floats]) -> None:
        super().__init__()
        self._caches = caches
        self._rows = rows
        self._profiles = profiles

    def encoders(self, encoder: Encoder, make: Callable[[], Encoders]) -> Encoders:
        return self._caches.encoders(encoder, make)

    def catalog(self, catalog: Catalog) -> Catalog:
        return catalog

    def retriever(
        self,
        catalog: Catalog,
        documents: Encoder,
        category_descriptions: Mapping[str, str],
        make: Callable[[], Retriever],
    ) -> Retriever:
        made = make()
        made.take_vectors(self._rows, self._profiles)
        return made


def _size(view: View) -> int:
    return sum(map(len, view))


def _in_memory(_board: str) -> VectorIndex | None:
    return None
