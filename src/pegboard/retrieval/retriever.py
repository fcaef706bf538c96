"""The indexes of one catalog snapshot, each built when it is first needed."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import cached_property

import numpy as np

from pegboard.errors import EncoderError, StoreError
from pegboard.model import Floats, Mask, Server, Tool
from pegboard.retrieval.duplicates import Groups, duplicate_groups
from pegboard.retrieval.encoders.cached import texts_at_once
from pegboard.retrieval.exact_names import ExactNames
from pegboard.retrieval.index.exact import ExactIndex
from pegboard.retrieval.intents import Span, apart
from pegboard.retrieval.keyword import NO_DESCRIPTIONS, KeywordIndex
from pegboard.retrieval.lexical import Bm25f
from pegboard.retrieval.name_match import NameIndex
from pegboard.retrieval.nearest import Near, Nearest
from pegboard.retrieval.progress import Progress
from pegboard.retrieval.texts import TEXTS, TextKind, fields, full, server_profile, short
from pegboard.seams import ClauseEncoder, Encoder, VectorIndex

MOST_COMPARED = 20_000
"""Tools of which every two are compared, to know which do the same job: beyond, that takes minutes."""
TINY = 1e-12


class Retriever:
    """Everything that can be asked about how a text and the tools of a snapshot fit together.

    With an ``index`` the meanings of tools are there and not in this process's memory, and a query is compared with the
    nearest alone. ``chunk`` is how many texts the encoder is given at a time, by default as many as it likes.
    """

    def __init__(
        self,
        tools: Sequence[Tool],
        servers: Mapping[str, Server],
        *,
        documents: Encoder,
        queries: Encoder,
        index: VectorIndex | None = None,
        chunk: int | None = None,
        category_descriptions: Mapping[str, str] = NO_DESCRIPTIONS,
    ) -> None:
        self._category_descriptions = category_descriptions
        self.tools = tuple(tools)
        self._servers = servers
        self._documents = documents
        self._queries = queries
        self._dense: dict[TextKind, ExactIndex] = {}
        self._meanings: ExactIndex | None = None
        self._nearest = None if index is None else Nearest(index, self.tools)
        self._filling: asyncio.Task[None] | None = None
        self._chunk = chunk or texts_at_once(documents)
        self._jobs: Groups | None = None
        self._server_vectors: Floats | None = None
        self._width = documents.dimensions
        self._building = asyncio.Lock()

    @cached_property
    def lexical(self) -> Bm25f:
        return Bm25f([fields(tool, self._servers.get(tool.server)) for tool in self.tools])

    @cached_property
    def names(self) -> NameIndex:
        return NameIndex(self.tools)

    @cached_property
    def exact_names(self) -> ExactNames:
        return ExactNames(self.tools)

    def index_words(self) -> None:
        """Build what is found by words. Thousands of tools take seconds: not for the event loop."""
        _ = self.lexical, self.names, self.exact_names

    @property
    def has_words(self) -> bool:
        """Whether `index_words` is done."""
        return {"lexical", "names", "exact_names"} <= self.__dict__.keys()

    @cached_property
    def keyword(self) -> KeywordIndex:
        return KeywordIndex(self.tools, self._category_descriptions)

    async def embed_query(self, text: str) -> Floats:
        """φ(q), shape (d,)."""
        return np.asarray(self._comparable(await self._queries.encode([text]))[0])

    async def embed_clauses(self, text: str, spans: Sequence[Span]) -> Floats:
        """φ of the text, then of each of its clauses, shape (1 + len(spans), d); a single one is the text again."""
        if len(spans) < 2:
            return np.repeat((await self.embed_query(text))[None], 2, axis=0)
        if isinstance(self._queries, ClauseEncoder):
            return self._comparable(await self._queries.encode_clauses(text, spans))
        return self._comparable(await self._queries.encode(apart(text, spans)))

    async def meanings(self, progress: Progress | None = None) -> ExactIndex:
        """One vector a tool for two texts of it, what it is for and how it does it: the mean direction of the two.

        Its product with a query is the mean of the two cosines but for a factor that belongs to the tool, so two texts
        cost the memory and the time of one.
        """
        if self._meanings is None:
            async with self._building:
                if self._meanings is None:
                    self._meanings = self._index(await self._meant(progress))
        return self._meanings

    async def vectors(self) -> Floats:
        """The vectors of `meanings`, shape (n, d), in catalog order, wherever they are kept."""
        return (await self.meanings()).vectors if self._nearest is None else await self._meant(None)

    async def warm(self, progress: Progress | None = None) -> None:
        """Embed the tools and fill the index. Raises StoreError where that is on the network and cannot be used."""
        if self._nearest is None:
            await self.meanings(progress)
        else:
            try:
                await self._fill(self._nearest, progress)
            except StoreError:
                self._nearest.fail()
                raise

    async def near(self, queries: Floats, points: Floats, among: Mask | None) -> Near | None:
        """What the index finds for these vectors, shape (m, d), beside the best by ``points``; None without an index.

        Raises StoreError where the index cannot be used; it is filled again with the next query.
        """
        if self._nearest is None:
            return None
        try:
            await self._fill(self._nearest, None)
            return await self._nearest.find(queries, points, among)
        except StoreError:
            self._nearest.fail()
            raise

    def fill_soon(self) -> None:
        """Try an index again that failed, for a query that does not wait for it."""
        if self._nearest is not None and self._nearest.has_failed and (self._filling is None or self._filling.done()):
            self._filling = asyncio.create_task(self._tried(self._nearest))

    async def filling(self) -> None:
        """Wait for what `fill_soon` has begun."""
        if self._filling is not None:
            await self._filling

    async def _tried(self, nearest: Nearest) -> None:
        with suppress(StoreError, EncoderError):  # the next query tries again
            await self._fill(nearest, None)

    async def _fill(self, nearest: Nearest, progress: Progress | None) -> None:
        if nearest.is_filled:
            return
        async with self._building:
            if not nearest.is_filled:
                await nearest.check()
            if not nearest.is_filled:
                await nearest.fill(await self._meant(progress), progress)

    async def _meant(self, progress: Progress | None) -> Floats:
        texts = [text for tool in self.tools for text in (short(tool), full(tool))]
        vectors = await self._embed(texts, _halved(progress))
        return _unit(vectors[::2] + vectors[1::2])

    async def jobs(self) -> Groups | None:
        """For each tool a number that it shares with those that do the same job on other servers, shape (n,).

        None where an index is used for more tools than can all be compared.
        """
        if self._jobs is None and (self._nearest is None or len(self.tools) <= MOST_COMPARED):
            vectors = await self.vectors()
            async with self._building:
                if self._jobs is None:
                    self._jobs = await asyncio.to_thread(duplicate_groups, self.tools, vectors)
        return self._jobs

    @property
    def has_meanings(self) -> bool:
        """Whether the vectors are there already, so that asking for them does not wait."""
        there = self._meanings is not None if self._nearest is None else self._nearest.is_filled
        return there and self._server_vectors is not None

    async def dense(self, kind: TextKind, progress: Progress | None = None) -> ExactIndex:
        """The vectors of one text a tool, in catalog order."""
        if kind not in self._dense:
            async with self._building:
                if kind not in self._dense:
                    vectors = await self._embed([TEXTS[kind](tool) for tool in self.tools], progress)
                    self._dense[kind] = self._index(vectors)
        return self._dense[kind]

    def _index(self, vectors: Floats) -> ExactIndex:
        index = ExactIndex(vectors.shape[1])
        index.add([tool.id for tool in self.tools], vectors)
        return index

    async def server_similarities(self, query: Floats) -> Floats:
        """Cosine of the query with each tool's server profile, shape (n,)."""
        return np.asarray((await self.server_vectors() @ query)[self._server_of])

    async def server_vectors(self) -> Floats:
        """One vector a server profile, shape (servers, d)."""
        if self._server_vectors is None:
            async with self._building:
                if self._server_vectors is None:
                    profiles = [server_profile(server) for server in self._servers.values()]
                    self._server_vectors = await self._embed(profiles, None)
        return self._server_vectors

    @cached_property
    def _server_of(self) -> np.ndarray:
        places = {name: place for place, name in enumerate(self._servers)}
        return np.array([places[tool.server] for tool in self.tools], np.int64)

    async def _embed(self, texts: Sequence[str], progress: Progress | None) -> Floats:
        order = sorted(range(len(texts)), key=lambda index: len(texts[index]))
        made: list[Floats] = []
        for start in range(0, len(order), self._chunk):
            rows = order[start : start + self._chunk]
            made.append(self._comparable(await self._documents.encode([texts[row] for row in rows])))
            if progress is not None:
                progress(start + len(rows), len(order))
        out = np.zeros((len(texts), self._width), np.float32)
        if made:
            out[order] = np.concatenate(made)
        return out

    def _comparable(self, vectors: Floats) -> Floats:
        """The vectors, if they have as many numbers as all others here. Raises EncoderError."""
        self._width = self._width or vectors.shape[1]
        if self._width != vectors.shape[1]:
            raise EncoderError(
                f"Vectors of {self._documents.model!r} have {vectors.shape[1]} numbers, and others {self._width}.",
                remedy="Another model answers under the same name: give it a name of its own, or empty cache_dir.",
            )
        return vectors


def _halved(progress: Progress | None) -> Progress | None:
    """Progress in tools, of two texts each."""
    return None if progress is None else lambda done, total: progress(done // 2, total // 2)


def _unit(vectors: Floats) -> Floats:
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    return np.asarray(vectors / np.maximum(lengths, TINY), np.float32)
