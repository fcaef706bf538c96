"""Rankers: from a query's text to one score per tool. Profiles choose one by name."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Literal, Protocol

import numpy as np

from pegboard.errors import EncoderError, StoreError
from pegboard.model import Floats, Mask, Scores
from pegboard.retrieval.exact_names import damped, name_first
from pegboard.retrieval.fusion import Fusion, UnscoredTools, shipped
from pegboard.retrieval.index_thread import on_index_thread
from pegboard.retrieval.intents import Span
from pegboard.retrieval.nearest import Near, Progress
from pegboard.retrieval.retriever import Retriever
from pegboard.retrieval.tool_texts import TextKind

LOGGER = logging.getLogger(__name__)

RankerKind = Literal["summary_cosine", "definition_cosine", "keyword", "bm25", "hybrid", "two_layers"]


class Ranker(Protocol):
    async def warm(self, progress: Progress | None = None) -> None:
        """Build what `score` needs."""
        ...

    async def index_words(self) -> None:
        """Build the word indexes that `score` needs, on a thread, unless they are there."""
        ...

    async def score(self, query: str, among: Mask | None = None) -> Scores:
        """The score of every tool, in catalog order. Only tools within ``among``, shape (n,), need one."""
        ...


class DampingRanker:
    """Another ranker, with the tools whose texts are built to be found (`rank_attacks`) behind the others.

    One that the query names exactly stays before those that it does not name.
    """

    def __init__(self, ranker: Ranker, retriever: Retriever) -> None:
        self._ranker = ranker
        self._retriever = retriever

    async def warm(self, progress: Progress | None = None) -> None:
        await self._ranker.warm(progress)
        await self._suspected()

    async def index_words(self) -> None:
        await self._ranker.index_words()
        await self._suspected()

    async def score(self, query: str, among: Mask | None = None) -> Scores:
        return damped(await self._ranker.score(query, among), await self._suspected())

    async def _suspected(self) -> Mask:
        if not self._retriever.knows_suspects:
            await on_index_thread(len(self._retriever.tools), lambda: self._retriever.suspected)
        return self._retriever.suspected


class CosineRanker:
    """ISO(q, t) = cos(φ(q), φ(text of t)) (Tool Attention eq. 5)."""

    def __init__(self, retriever: Retriever, kind: TextKind) -> None:
        self._retriever = retriever
        self._kind = kind

    async def warm(self, progress: Progress | None = None) -> None:
        await self._retriever.dense(self._kind, progress)

    async def index_words(self) -> None:
        """It uses none."""

    async def score(self, query: str, among: Mask | None = None) -> Scores:
        index = await self._retriever.dense(self._kind)
        vector = await self._retriever.embed_query(query)
        cosines = index.similarities(vector)
        return Scores(values=cosines, scale="cosine", parts={"cosine": cosines}, query_vector=vector)


class TwoLayerRanker:
    """cos(q, f_ij) with each tool, and cos(q, f_i) with its server's profile beside it (EHRR eq. 1, not clipped)."""

    def __init__(self, retriever: Retriever) -> None:
        self._retriever = retriever

    async def warm(self, progress: Progress | None = None) -> None:
        await self._retriever.dense("definition", progress)
        await self._retriever.server_vectors()

    async def index_words(self) -> None:
        """It uses none."""

    async def score(self, query: str, among: Mask | None = None) -> Scores:
        index = await self._retriever.dense("definition")
        vector = await self._retriever.embed_query(query)
        cosines = index.similarities(vector)
        parts = {"cosine": cosines, "server": await self._retriever.server_similarities(vector)}
        return Scores(values=cosines, scale="cosine", parts=parts, query_vector=vector)


class KeywordRanker:
    """Points by where the query's words occur (the lazy-loading PRD, search organization)."""

    def __init__(self, retriever: Retriever) -> None:
        self._retriever = retriever

    async def warm(self, progress: Progress | None = None) -> None:
        await self.index_words()

    async def index_words(self) -> None:
        if not self._retriever.knows_keyword:
            await on_index_thread(len(self._retriever.tools), lambda: self._retriever.keyword)

    async def score(self, query: str, among: Mask | None = None) -> Scores:
        await self.index_words()
        points = self._retriever.keyword.scores(query)
        return Scores(values=points, scale="points", parts={"keyword": points})


class Bm25Ranker:
    """BM25F alone."""

    def __init__(self, retriever: Retriever) -> None:
        self._retriever = retriever

    async def warm(self, progress: Progress | None = None) -> None:
        await self.index_words()

    async def index_words(self) -> None:
        if not self._retriever.knows_lexical:
            await on_index_thread(len(self._retriever.tools), lambda: self._retriever.lexical)

    async def score(self, query: str, among: Mask | None = None) -> Scores:
        await self.index_words()
        points = self._retriever.lexical.scores(query)
        return Scores(values=points, scale="points", parts={"bm25": points})


class HybridRanker:
    """Combines meaning (of the query and its clauses), words, names and servers into a probability of relevance.

    Tools that the query names come before all others.

    If the encoder or the index fails, only words are used: relevance fails open. The same holds while the tools are
    being embedded, unless the ranker is ``patient``. If it is not ``last``, it raises EncoderError in both cases
    instead.
    """

    def __init__(
        self,
        retriever: Retriever,
        *,
        patient: bool = True,
        fusions: Mapping[str, Fusion] | None = None,
        last: bool = True,
    ) -> None:
        self._retriever = retriever
        self._patient = patient
        self._fusions = shipped() if fusions is None else fusions
        self._last = last

    async def warm(self, progress: Progress | None = None) -> None:
        await self.index_words()
        try:
            await self._retriever.warm(progress)
        except StoreError as error:
            LOGGER.debug("The index was not filled: %s", error)
        else:
            await self._retriever.jobs()
        await self._retriever.server_vectors()

    async def index_words(self) -> None:
        if not self._retriever.has_words:
            await on_index_thread(len(self._retriever.tools), self._retriever.index_words)

    async def score(self, query: str, among: Mask | None = None) -> Scores:
        await self.index_words()
        known = self._retriever.word_scores(query)
        scores = await self._score(query, known.spans, known.parts, among)
        return name_first(scores, known.named if among is None else known.named[among[known.named]])

    async def _score(
        self, query: str, spans: Sequence[Span], words: Mapping[str, Floats], among: Mask | None
    ) -> Scores:
        if not self._patient and not self._retriever.has_meanings:
            self._retriever.fill_soon()
            if not self._last:
                raise EncoderError("The tools are not embedded yet.")
            return self._by_words(words, len(spans))
        try:
            vectors = await self._retriever.embed_clauses(query, spans)
            server = {"server": await self._retriever.server_similarities(vectors[0])}
            near = await self._retriever.near(vectors, words["bm25"], among)
            if near is None:
                meaning = _meaning((await self._retriever.meanings()).similarities(vectors))
                scores = self._fusions["hybrid"].fuse(
                    {**meaning, **server, **words}, clauses=len(spans), query_vector=vectors[0]
                )
            else:
                scores = _scores(self._fusions["hybrid"], near, {**server, **words}, among, len(spans))
                scores = replace(scores, query_vector=vectors[0])
            return replace(scores, jobs=await self._retriever.jobs())
        except EncoderError as error:
            if not self._last:
                raise
            LOGGER.warning("Ranking by words only: %s", error)
        except StoreError as error:
            LOGGER.debug("Ranking by words only: %s", error)
        return self._by_words(words, len(spans))

    def _by_words(self, words: Mapping[str, Floats], clauses: int) -> Scores:
        fusion = self._fusions["words"]
        return fusion.fuse({part: values for part, values in words.items() if part in fusion.weights}, clauses=clauses)


def _meaning(cosines: Floats) -> dict[str, Floats]:
    """The cosine of each tool with the query and with its nearest clause, from cosines of shape (1 + clauses, n)."""
    return {"cosine": cosines[0], "clause": cosines[1:].max(axis=0)}


def _scores(fusion: Fusion, near: Near, known: Mapping[str, Floats], among: Mask | None, clauses: int) -> Scores:
    """The scores of the candidates, as if all tools had been scored; 0 for every other tool.

    ``known`` are the parts that exist for all tools.
    """
    size = len(next(iter(known.values())))
    sampled = _meaning(near.sample_cosines)
    left_out = ~np.isin(near.sample, near.places)
    at = near.sample[left_out]
    others = UnscoredTools(
        spread={**sampled, **known},
        parts={name: values[left_out] for name, values in sampled.items()}
        | {name: values[at] for name, values in known.items()},
        each=(size - len(near.places)) / max(1, len(at)),
        eligible=np.ones(len(at), np.bool_) if among is None else among[at],
    )
    parts = _meaning(near.cosines) | {name: values[near.places] for name, values in known.items()}
    scores = fusion.fuse(parts, clauses=clauses, others=others)
    return replace(
        scores,
        values=_put(scores.values, near, size),
        parts={name: known[name] if name in known else _put(values, near, size) for name, values in parts.items()},
    )


def _put(values: Floats, near: Near, size: int) -> Floats:
    """Values in catalog order, 0 for tools that are not candidates."""
    out = np.zeros(size, np.float32)
    out[near.places] = values
    return out


def ranker(
    kind: RankerKind,
    retriever: Retriever,
    *,
    patient: bool = True,
    fusions: Mapping[str, Fusion] | None = None,
    last: bool = True,
) -> Ranker:
    """The ranker of a kind. ``fusions`` replace the shipped ones, `hybrid` and `words`.

    ``last`` is false if another encoder takes over when this one fails; words alone are used only if none works.
    """
    found = _ranker(kind, retriever, patient, fusions, last)
    return DampingRanker(found, retriever)


def _ranker(
    kind: RankerKind, retriever: Retriever, patient: bool, fusions: Mapping[str, Fusion] | None, last: bool
) -> Ranker:
    match kind:
        case "summary_cosine":
            return CosineRanker(retriever, "summary")
        case "definition_cosine":
            return CosineRanker(retriever, "definition")
        case "two_layers":
            return TwoLayerRanker(retriever)
        case "keyword":
            return KeywordRanker(retriever)
        case "bm25":
            return Bm25Ranker(retriever)
        case "hybrid":
            return HybridRanker(retriever, patient=patient, fusions=fusions, last=last)
