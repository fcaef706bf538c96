"""The indexes of one catalog snapshot, each built on first use."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from contextlib import suppress
from operator import attrgetter

import numpy as np

from pegboard.cached_property import cached_property
from pegboard.errors import EncoderError, StoreError
from pegboard.model import Floats, Mask, Server, Tool
from pegboard.protocols import ClauseEncoder, Encoder, VectorIndex
from pegboard.retrieval.duplicates import Duplicates, Groups
from pegboard.retrieval.encoders.encoder_cache import texts_at_once
from pegboard.retrieval.exact_names import ExactNames
from pegboard.retrieval.index.exact import ExactIndex
from pegboard.retrieval.index.growing_rows import GrowingRows
from pegboard.retrieval.index_thread import on_index_thread
from pegboard.retrieval.intents import Span, with_clauses
from pegboard.retrieval.lexical import NO_DESCRIPTIONS, Bm25f, KeywordIndex
from pegboard.retrieval.mentions import Mentions
from pegboard.retrieval.name_match import NameIndex
from pegboard.retrieval.nearest import Near, Nearest, Progress
from pegboard.retrieval.search_index import SearchIndex
from pegboard.retrieval.service_names import ServiceNames
from pegboard.retrieval.slots import kept_places
from pegboard.retrieval.tool_texts import TEXTS, TextKind, full, server_profile, short
from pegboard.retrieval.word_indexes import WordIndexes, WordScores

MOST_COMPARED = 20_000
"""Maximum tools compared pairwise to find those that do the same job; more would take minutes."""
TINY = 1e-12


class Retriever:
    """The indexes over the tools of a snapshot.

    ``before`` is an earlier snapshot with the same encoder, whose vectors of unchanged tools are taken over.

    With an ``index``, the tools' vectors are there instead of in this process's memory, and a query is compared only
    with the nearest ones. ``chunk`` is the number of texts per call of the encoder, by default the encoder's own.
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
        before: Retriever | None = None,
    ) -> None:
        self._before: Retriever | None = before if before is None or before._meanings is not None else before._before
        self._category_descriptions = category_descriptions
        self.tools = tuple(tools)
        self._servers = servers
        self._words: WordIndexes = WordIndexes(self.tools, servers, None if before is None else before._words)
        self._documents = documents
        self._queries = queries
        self._dense: dict[TextKind, ExactIndex] = {}
        self._meanings: ExactIndex | None = None
        self._rows: GrowingRows | None = None
        self._nearest = None if index is None else Nearest(index, self.tools)
        self._filling: asyncio.Task[None] | None = None
        self._chunk = chunk or texts_at_once(documents)
        self._jobs: Duplicates | None = None
        self._searched_before: SearchIndex | None = None if before is None else before._last_search_index()
        self._jobs_before: tuple[Sequence[Tool], Duplicates] | None = None
        if before is not None:
            self._jobs_before = before._jobs_before if before._jobs is None else (before.tools, before._jobs)
        self._server_vectors: Floats | None = None
        self._profiles_before: Mapping[str, Floats] = {} if before is None else before._profile_vectors()
        self._width = documents.dimensions
        self._building = asyncio.Lock()

    def is_of(self, tools: tuple[Tool, ...], category_descriptions: Mapping[str, str]) -> bool:
        """Whether it is over this very tuple of tools."""
        return self.tools is tools and self._category_descriptions == category_descriptions

    @cached_property
    def search_index(self) -> SearchIndex:
        """What searches need besides the ranking. Thousands of tools take a second: not for the event loop."""
        before, self._searched_before = self._searched_before, None
        return SearchIndex(self.tools, self._servers, before=before)

    @property
    def knows_search_index(self) -> bool:
        """Whether `search_index` is known, so that it takes no time."""
        return "search_index" in self.__dict__

    def _last_search_index(self) -> SearchIndex | None:
        """That of these tools if it was used, or else that of an earlier snapshot."""
        return self.__dict__.get("search_index", self._searched_before)

    @property
    def lexical(self) -> Bm25f:
        return self._words.lexical

    @property
    def knows_lexical(self) -> bool:
        """Whether `lexical` is known, so that it takes no time."""
        return "lexical" in self._words.__dict__

    @property
    def names(self) -> NameIndex:
        return self._words.names

    @property
    def exact_names(self) -> ExactNames:
        return self._words.exact_names

    @property
    def service_names(self) -> ServiceNames:
        return self._words.service_names

    def word_scores(self, query: str) -> WordScores:
        """What the words of a query say, once `index_words` is done."""
        return self._words.scores(query)

    @property
    def mentions(self) -> Mentions:
        return self._words.mentions

    @property
    def suspected(self) -> Mask:
        """Which tools have texts that are built to be found instead of others, shape (n,)."""
        return self._words.suspected

    @property
    def knows_suspects(self) -> bool:
        """Whether `suspected` is known, so that it takes no time."""
        return "suspects" in self._words.__dict__

    def index_words(self) -> None:
        """Build the word indexes. Thousands of tools take seconds: not for the event loop."""
        self._words.build()

    @property
    def has_words(self) -> bool:
        """Whether `index_words` is done."""
        return self._words.are_built

    @cached_property
    def keyword(self) -> KeywordIndex:
        return KeywordIndex(self.tools, self._category_descriptions)

    @property
    def knows_keyword(self) -> bool:
        """Whether `keyword` is known, so that it takes no time."""
        return "keyword" in self.__dict__

    async def embed_query(self, text: str) -> Floats:
        """φ(q), shape (d,)."""
        return np.asarray(self._comparable(await self._queries.encode([text]))[0])

    async def embed_clauses(self, text: str, spans: Sequence[Span]) -> Floats:
        """φ of the text, then of each clause, shape (1 + len(spans), d); a single clause is the text again."""
        if len(spans) < 2:
            return np.repeat((await self.embed_query(text))[None], 2, axis=0)
        if isinstance(self._queries, ClauseEncoder):
            return self._comparable(await self._queries.encode_clauses(text, spans))
        return self._comparable(await self._queries.encode(with_clauses(text, spans)))

    async def meanings(self, progress: Progress | None = None) -> ExactIndex:
        """One vector per tool: the mean direction of its short text (purpose) and its full text (operation).

        Its product with a query is the mean of the two cosines up to a factor of the tool, so two texts cost the memory
        and time of one.
        """
        if self._meanings is None:
            async with self._building:
                if self._meanings is None:
                    self._rows = await self._meant(progress)
                    self._meanings = self._index(self._rows.rows)
        return self._meanings

    def take_vectors(self, rows: Floats, profiles: Mapping[str, Floats]) -> None:
        """Use vectors that are known instead of embedding: ``rows``, shape (n, d), are those of `meanings`, and
        ``profiles`` those of servers' profiles, by the profile (`tool_texts.server_profile`)."""
        if len(rows) != len(self.tools):
            raise ValueError(f"{len(rows)} vectors for {len(self.tools)} tools")
        self._rows = GrowingRows(rows)
        self._meanings = self._index(rows)
        self._before, self._profiles_before = None, dict(profiles)

    async def vectors(self) -> Floats:
        """The vectors of `meanings`, shape (n, d), in catalog order, wherever they are stored."""
        return (await self.meanings()).vectors if self._nearest is None else (await self._meant(None)).rows

    async def warm(self, progress: Progress | None = None) -> None:
        """Embed the tools and fill the index. Raises StoreError if a remote index cannot be used."""
        if self._nearest is None:
            await self.meanings(progress)
        else:
            try:
                await self._fill(self._nearest, progress)
            except StoreError:
                self._nearest.fail()
                raise

    async def near(self, queries: Floats, points: Floats, among: Mask | None) -> Near | None:
        """The nearest tools to these vectors, shape (m, d), and the best by ``points``; None without an index.

        Raises StoreError if the index cannot be used; the next query fills it again.
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
        """Retry a failed index in the background."""
        if self._nearest is not None and self._nearest.has_failed and (self._filling is None or self._filling.done()):
            self._filling = asyncio.create_task(self._tried(self._nearest))

    async def filling(self) -> None:
        """Wait for the task of `fill_soon`."""
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
                await nearest.fill((await self._meant(progress)).rows, progress)

    async def _meant(self, progress: Progress | None) -> GrowingRows:
        """The vectors of `meanings`; those of tools that the snapshot ``before`` had too are taken from it."""
        before, self._before = self._before, None
        known: GrowingRows | None = None
        kept = np.full(len(self.tools), -1, np.intp)
        if before is not None and before._rows is not None:
            known, kept = before._rows, kept_places(before.tools, self.tools)
        new = np.flatnonzero(kept < 0)
        texts = await on_index_thread(len(new), lambda: _two_texts([self.tools[place] for place in new]))
        vectors = await self._embed(texts, _halved(progress))
        made = _unit(vectors[::2] + vectors[1::2])
        if known is None:
            return GrowingRows(made)
        if len(kept) == len(known.rows) + len(new) and (new >= len(known.rows)).all():
            return known.extended(made)
        rows = known.rows[kept]
        rows[new] = made
        return GrowingRows(rows)

    async def jobs(self) -> Groups | None:
        """For each tool a number shared with tools that do the same job on other servers, shape (n,).

        None if an index is used and there are more than `MOST_COMPARED` tools.
        """
        if self._jobs is None and (self._nearest is None or len(self.tools) <= MOST_COMPARED):
            vectors = await self.vectors()
            async with self._building:
                if self._jobs is None:
                    self._jobs = await on_index_thread(len(self.tools), lambda: self._same_jobs(vectors))
                    self._jobs_before = None
        return None if self._jobs is None else self._jobs.groups

    def _same_jobs(self, vectors: Floats) -> Duplicates:
        if self._jobs_before is None:
            return Duplicates.among(self.tools, vectors)
        before, jobs = self._jobs_before
        return jobs.changed(kept_places(before, self.tools), self.tools, vectors)

    @property
    def has_meanings(self) -> bool:
        """Whether the vectors exist already, so that using them does not wait."""
        there = self._meanings is not None if self._nearest is None else self._nearest.is_filled
        return there and self._server_vectors is not None

    async def dense(self, kind: TextKind, progress: Progress | None = None) -> ExactIndex:
        """The vectors of one text per tool, in catalog order."""
        if kind not in self._dense:
            async with self._building:
                if kind not in self._dense:
                    vectors = await self._embed([TEXTS[kind](tool) for tool in self.tools], progress)
                    self._dense[kind] = self._index(vectors)
        return self._dense[kind]

    def _index(self, vectors: Floats) -> ExactIndex:
        return ExactIndex.of(map(attrgetter("id"), self.tools), vectors)

    async def server_similarities(self, query: Floats) -> Floats:
        """Cosine of the query with each tool's server profile, shape (n,)."""
        return np.asarray((await self.server_vectors() @ query)[self._server_of])

    async def server_vectors(self) -> Floats:
        """One vector per server profile, shape (servers, d)."""
        if self._server_vectors is None:
            async with self._building:
                if self._server_vectors is None:
                    profiles = [server_profile(server) for server in self._servers.values()]
                    known = dict(self._profiles_before)
                    new = list(dict.fromkeys(profile for profile in profiles if profile not in known))
                    known |= zip(new, await self._embed(new, None), strict=True)
                    rows = [known[profile] for profile in profiles]
                    self._server_vectors = np.stack(rows) if rows else await self._embed([], None)
                    self._profiles_before = {}
        return self._server_vectors

    def _profile_vectors(self) -> Mapping[str, Floats]:
        """The vectors of servers' profiles that are known, by the profile."""
        if self._server_vectors is None:
            return self._profiles_before
        return dict(zip(map(server_profile, self._servers.values()), self._server_vectors, strict=True))

    @cached_property
    def _server_of(self) -> np.ndarray:
        places = {name: place for place, name in enumerate(self._servers)}
        return np.fromiter(map(places.__getitem__, map(attrgetter("id.server"), self.tools)), np.int64, len(self.tools))

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
        """The vectors, if they have the same width as all others here. Raises EncoderError otherwise."""
        self._width = self._width or vectors.shape[1]
        if self._width != vectors.shape[1]:
            raise EncoderError(
                f"Vectors of {self._documents.model!r} have {vectors.shape[1]} numbers, but others have {self._width}.",
                remedy="Another model answers under the same name: give it a different name, or empty cache_dir.",
            )
        return vectors


def _two_texts(tools: Sequence[Tool]) -> list[str]:
    return [text for tool in tools for text in (short(tool), full(tool))]


def _halved(progress: Progress | None) -> Progress | None:
    """Progress counted in tools, which have two texts each."""
    return None if progress is None else lambda done, total: progress(done // 2, total // 2)


def _unit(vectors: Floats) -> Floats:
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    return np.asarray(vectors / np.maximum(lengths, TINY), np.float32)
