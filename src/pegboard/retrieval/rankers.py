"""From a query's text to one score a tool. One small class an idea; profiles choose by name."""

from __future__ import annotations

import asyncio
import logging
from typing import Literal, Protocol

import numpy as np

from pegboard.errors import EncoderError
from pegboard.model import Scores
from pegboard.retrieval.fusion import fuse
from pegboard.retrieval.retriever import Progress, Retriever
from pegboard.retrieval.texts import TextKind

LOGGER = logging.getLogger(__name__)

RankerKind = Literal["summary_cosine", "definition_cosine", "keyword", "bm25", "hybrid"]


class Ranker(Protocol):
    async def warm(self, progress: Progress | None = None) -> None:
        """Build what `score` needs."""
        ...

    async def score(self, query: str) -> Scores: ...


class CosineRanker:
    """ISO(q, t) = cos(φ(q), φ(text of t)) (seed 000 eq. 5)."""

    def __init__(self, retriever: Retriever, kind: TextKind) -> None:
        self._retriever = retriever
        self._kind = kind

    async def warm(self, progress: Progress | None = None) -> None:
        await self._retriever.dense(self._kind, progress)

    async def score(self, query: str) -> Scores:
        index = await self._retriever.dense(self._kind)
        vector = await self._retriever.embed_query(query)
        cosines = index.similarities(vector)
        return Scores(values=cosines, scale="cosine", parts={"cosine": cosines}, query_vector=vector)


class KeywordRanker:
    """Points by where the query's words stand (seed 002, search organization)."""

    def __init__(self, retriever: Retriever) -> None:
        self._retriever = retriever

    async def warm(self, progress: Progress | None = None) -> None:
        _ = self._retriever.keyword

    async def score(self, query: str) -> Scores:
        points = self._retriever.keyword.scores(query)
        return Scores(values=points, scale="points", parts={"keyword": points})


class Bm25Ranker:
    """BM25F alone."""

    def __init__(self, retriever: Retriever) -> None:
        self._retriever = retriever

    async def warm(self, progress: Progress | None = None) -> None:
        _ = self._retriever.lexical

    async def score(self, query: str) -> Scores:
        points = self._retriever.lexical.scores(query)
        return Scores(values=points, scale="points", parts={"bm25": points})


class HybridRanker:
    """Meaning, words and server together, as a probability of relevance.

    Where the encoder fails, words alone answer: relevance fails open. So they do while the tools are still being
    embedded, for a caller that is not ``patient``.
    """

    KIND: TextKind = "definition"

    def __init__(self, retriever: Retriever, *, patient: bool = True) -> None:
        self._retriever = retriever
        self._patient = patient

    async def warm(self, progress: Progress | None = None) -> None:
        await asyncio.to_thread(lambda: self._retriever.lexical)
        await self._retriever.dense(self.KIND, progress)
        await self._retriever.server_similarities(np.zeros(self._retriever.dimensions, np.float32))

    async def score(self, query: str) -> Scores:
        if not self._retriever.has_lexical:
            await asyncio.to_thread(lambda: self._retriever.lexical)
        lexical = self._retriever.lexical.scores(query)
        if not self._patient and not self._retriever.has_dense(self.KIND):
            return fuse({"bm25": lexical})
        try:
            vector = await self._retriever.embed_query(query)
            index = await self._retriever.dense(self.KIND)
            server = await self._retriever.server_similarities(vector)
        except EncoderError as error:
            LOGGER.warning("Ranking by words alone: %s", error)
            return fuse({"bm25": lexical})
        return fuse({"cosine": index.similarities(vector), "bm25": lexical, "server": server}, vector)


def ranker(kind: RankerKind, retriever: Retriever, *, patient: bool = True) -> Ranker:
    match kind:
        case "summary_cosine":
            return CosineRanker(retriever, "summary")
        case "definition_cosine":
            return CosineRanker(retriever, "definition")
        case "keyword":
            return KeywordRanker(retriever)
        case "bm25":
            return Bm25Ranker(retriever)
        case "hybrid":
            return HybridRanker(retriever, patient=patient)
