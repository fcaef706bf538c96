"""The indexes of one catalog snapshot, each built when it is first needed."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property

import numpy as np

from pegboard.model import Floats, Server, Tool
from pegboard.retrieval.index.exact import ExactIndex
from pegboard.retrieval.keyword import KeywordIndex
from pegboard.retrieval.lexical import Bm25f
from pegboard.retrieval.texts import TEXTS, TextKind, fields, server_profile
from pegboard.seams import Encoder

Progress = Callable[[int, int], None]
"""Called with (done, total) while tools are embedded."""

CHUNK = 64


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

    async def dense(self, kind: TextKind, progress: Progress | None = None) -> ExactIndex:
        """The vectors of one text a tool, in catalog order."""
        if kind not in self._dense:
            async with self._building:
                if kind not in self._dense:
                    vectors = await self._embed([TEXTS[kind](tool) for tool in self.tools], progress)
                    index = ExactIndex(self._documents.dimensions)
                    index.add([tool.id for tool in self.tools], vectors)
                    self._dense[kind] = index
        return self._dense[kind]

    def has_dense(self, kind: TextKind) -> bool:
        """Whether the vectors are there already, so that asking for them does not wait."""
        return kind in self._dense and self._server_vectors is not None

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
