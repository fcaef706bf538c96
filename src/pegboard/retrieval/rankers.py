"""From a query's text to one score a tool. One small class an idea; profiles choose by name."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping
from dataclasses import replace
from typing import Literal, Protocol

import numpy as np

from pegboard.errors import EncoderError
from pegboard.model import Floats, Scores
from pegboard.retrieval.fusion import Fusion, shipped
from pegboard.retrieval.intents import clauses
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
    """Meaning, clause by clause too, words and server together, as a probability of relevance.

    Where the encoder fails, words alone answer: relevance fails open. So they do while the tools are still being
    embedded, for a caller that is not ``patient``.
    """

    def __init__(
        self, retriever: Retriever, *, patient: bool = True, fusions: Mapping[str, Fusion] | None = None
    ) -> None:
        self._retriever = retriever
        self._patient = patient
        self._fusions = shipped() if fusions is None else fusions

    async def warm(self, progress: Progress | None = None) -> None:
        await asyncio.to_thread(lambda: self._retriever.lexical)
        await self._retriever.meanings(progress)
        await self._retriever.jobs()
        await self._retriever.server_similarities(np.zeros(self._retriever.dimensions, np.float32))

    async def score(self, query: str) -> Scores:
        if not self._retriever.has_lexical:
            await asyncio.to_thread(lambda: self._retriever.lexical)
        words = {"bm25": self._retriever.lexical.scores(query)}
        spans = clauses(query)
        if not self._patient and not self._retriever.has_meanings:
            return self._fusions["words"].fuse(words, clauses=len(spans))
        try:
            vectors = await self._retriever.embed_clauses(query, spans)
            meaning = await self._meaning(vectors)
        except EncoderError as error:
            LOGGER.warning("Ranking by words alone: %s", error)
            return self._fusions["words"].fuse(words, clauses=len(spans))
        scores = self._fusions["hybrid"].fuse(meaning | words, clauses=len(spans), query_vector=vectors[0])
        return replace(scores, jobs=await self._retriever.jobs())

    async def _meaning(self, vectors: Floats) -> dict[str, Floats]:
        """How near each tool is to the query and to its nearest clause, and its server to the query."""
        index = await self._retriever.meanings()
        similarities = index.similarities(vectors)
        server = await self._retriever.server_similarities(vectors[0])
        return {"cosine": similarities[0], "clause": similarities[1:].max(axis=0), "server": server}


def ranker(
    kind: RankerKind, retriever: Retriever, *, patient: bool = True, fusions: Mapping[str, Fusion] | None = None
) -> Ranker:
    """``fusions`` takes the place of those that ship, `hybrid` and `words`."""
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
            return HybridRanker(retriever, patient=patient, fusions=fusions)
