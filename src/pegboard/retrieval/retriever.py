"""The indexes of one catalog snapshot, each built when it is first needed."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property

import numpy as np

from pegboard.model import Floats, Server, Tool
from pegboard.retrieval.duplicates import Groups, duplicate_groups
from pegboard.retrieval.index.exact import ExactIndex
from pegboard.retrieval.intents import Span, apart
from pegboard.retrieval.keyword import KeywordIndex
from pegboard.retrieval.lexical import Bm25f
from pegboard.retrieval.texts import TEXTS, TextKind, fields, full, server_profile, short
from pegboard.seams import ClauseEncoder, Encoder

Progress = Callable[[int, int], None]
"""Called with (done, total) while tools are embedded."""

CHUNK = 64
TINY = 1e-12


class Retriever:
    """Everything that can be asked about how a text and the tools of a snapshot fit together."""

    def __init__(
        self,
        tools: Sequence[Tool],
        servers: Mapping[str, Server],
        *,
        documents: Encoder,
        queries: Encoder,
    ) -> None:
        self.tools = tuple(tools)
        self._servers = servers
        self._documents = documents
        self._queries = queries
        self._dense: dict[TextKind, ExactIndex] = {}
        self._meanings: ExactIndex | None = None
        self._jobs: Groups | None = None
        self._server_vectors: Floats | None = None
        self._building = asyncio.Lock()

    @cached_property
    def lexical(self) -> Bm25f:
        return Bm25f([fields(tool, self._servers.get(tool.server)) for tool in self.tools])

    @property
    def has_lexical(self) -> bool:
        """Whether the word index is there already: building it for thousands of tools takes seconds."""
        return "lexical" in self.__dict__

    @cached_property
    def keyword(self) -> KeywordIndex:
        return KeywordIndex(self.tools)

    @property
    def dimensions(self) -> int:
        return self._documents.dimensions

    async def embed_query(self, text: str) -> Floats:
        """φ(q), shape (d,)."""
        return np.asarray((await self._queries.encode([text]))[0])

    async def embed_clauses(self, text: str, spans: Sequence[Span]) -> Floats:
        """φ of the text, then of each of its clauses, shape (1 + len(spans), d); a single one is the text again."""
        if len(spans) < 2:
            return np.repeat((await self.embed_query(text))[None], 2, axis=0)
        if isinstance(self._queries, ClauseEncoder):
            return await self._queries.encode_clauses(text, spans)
        return await self._queries.encode(apart(text, spans))

    async def meanings(self, progress: Progress | None = None) -> ExactIndex:
        """One vector a tool for two texts of it, what it is for and how it does it: the mean direction of the two.

        Its product with a query is the mean of the two cosines but for a factor that belongs to the tool, so two texts
        cost the memory and the time of one.
        """
        if self._meanings is None:
            async with self._building:
                if self._meanings is None:
                    texts = [text for tool in self.tools for text in (short(tool), full(tool))]
                    vectors = await self._embed(texts, _halved(progress))
                    self._meanings = self._index(_unit(vectors[::2] + vectors[1::2]))
        return self._meanings

    async def jobs(self) -> Groups:
        """For each tool a number that it shares with those that do the same job on other servers, shape (n,)."""
        if self._jobs is None:
            vectors = (await self.meanings()).vectors
            async with self._building:
                if self._jobs is None:
                    self._jobs = await asyncio.to_thread(duplicate_groups, self.tools, vectors)
        return self._jobs

    @property
    def has_meanings(self) -> bool:
        """Whether the vectors are there already, so that asking for them does not wait."""
        return self._meanings is not None and self._server_vectors is not None

    async def dense(self, kind: TextKind, progress: Progress | None = None) -> ExactIndex:
        """The vectors of one text a tool, in catalog order."""
        if kind not in self._dense:
            async with self._building:
                if kind not in self._dense:
                    vectors = await self._embed([TEXTS[kind](tool) for tool in self.tools], progress)
                    self._dense[kind] = self._index(vectors)
        return self._dense[kind]

    def _index(self, vectors: Floats) -> ExactIndex:
        index = ExactIndex(self._documents.dimensions)
        index.add([tool.id for tool in self.tools], vectors)
        return index

    async def server_similarities(self, query: Floats) -> Floats:
        """Cosine of the query with each tool's server profile, shape (n,)."""
        if self._server_vectors is None:
            async with self._building:
                if self._server_vectors is None:
                    profiles = [server_profile(server) for server in self._servers.values()]
                    self._server_vectors = await self._embed(profiles, None)
        return np.asarray((self._server_vectors @ query)[self._server_of])

    @cached_property
    def _server_of(self) -> np.ndarray:
        places = {name: place for place, name in enumerate(self._servers)}
        return np.array([places[tool.server] for tool in self.tools], np.int64)

    async def _embed(self, texts: Sequence[str], progress: Progress | None) -> Floats:
        out = np.zeros((len(texts), self._documents.dimensions), np.float32)
        order = sorted(range(len(texts)), key=lambda index: len(texts[index]))
        for start in range(0, len(order), CHUNK):
            rows = order[start : start + CHUNK]
            out[rows] = await self._documents.encode([texts[row] for row in rows])
            if progress is not None:
                progress(start + len(rows), len(order))
        return out


def _halved(progress: Progress | None) -> Progress | None:
    """Progress in tools, of two texts each."""
    return None if progress is None else lambda done, total: progress(done // 2, total // 2)


def _unit(vectors: Floats) -> Floats:
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    return np.asarray(vectors / np.maximum(lengths, TINY), np.float32)
