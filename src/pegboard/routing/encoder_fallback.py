"""A fallback encoder: query, tools, fusion and limits switch together, so that vectors of two encoders never mix."""

from __future__ import annotations

import asyncio
import logging
from dataclasses import dataclass

from pegboard.errors import EncoderError
from pegboard.model import Mask, Scores
from pegboard.protocols import Encoder
from pegboard.retrieval import Progress, Ranker
from pegboard.routing.profiles import Profile

LOGGER = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class Ranking:
    """A ranker over the vectors of one encoder, and the profile whose limits suit its scores."""

    profile: Profile
    ranker: Ranker
    encoder: Encoder

    def encoder_of(self, scores: Scores | None) -> str:
        """The model whose vectors the scores used; empty if none."""
        if scores is None or scores.query_vector is None:
            return ""
        return f"{self.encoder.provider}/{self.encoder.model}"


class FallbackRanking:
    """The first ranking, and a fallback that answers while the encoder of the first fails.

    After a failure no turn waits for the first: it is retried in the background, with the turns' queries, until it
    answers.
    """

    def __init__(self, first: Ranking, fallback: Ranking | None = None) -> None:
        self._first = first
        self._fallback = fallback
        self._failed = False
        self._trying: asyncio.Task[None] | None = None

    async def warm(self, progress: Progress | None = None) -> None:
        """Build what both need, so that the fallback can answer immediately. Raises EncoderError if neither works."""
        if self._fallback is None:
            await self._first.ranker.warm(progress)
            return
        try:
            await self._first.ranker.warm(progress)
            self._failed = False
        except EncoderError as error:
            self._give_way(error)
        try:
            await self._fallback.ranker.warm(progress)
        except EncoderError as error:
            if self._failed:
                raise
            LOGGER.warning("The fallback encoder cannot be used: %s", error)

    async def index_words(self) -> None:
        """Build the word indexes of both, unless they are there."""
        await self._first.ranker.index_words()
        if self._fallback is not None:
            await self._fallback.ranker.index_words()

    async def relevance(self, query: str, among: Mask) -> tuple[Scores | None, Ranking]:
        """The scores and their ranking; None if relevance is unknown: no text (P4), no tool, or no encoder."""
        if not query.strip() or not among.size:
            return None, self._first
        try:
            return await self.score(query, among)
        except EncoderError:
            LOGGER.exception("The encoder failed; every eligible tool passes")
            return None, self._first

    async def score(self, query: str, among: Mask | None = None) -> tuple[Scores, Ranking]:
        """The scores and their ranking; only tools of ``among`` need a score. Raises EncoderError if no encoder
        works."""
        if self._fallback is None:
            return await self._first.ranker.score(query, among), self._first
        if self._failed:
            self._try_again(query, among)
        else:
            try:
                return await self._first.ranker.score(query, among), self._first
            except EncoderError as error:
                self._give_way(error)
        return await self._fallback.ranker.score(query, among), self._fallback

    def _give_way(self, error: EncoderError) -> None:
        self._failed = True
        LOGGER.debug("The fallback encoder takes over: %s", error)

    def _try_again(self, query: str, among: Mask | None) -> None:
        if self._trying is None or self._trying.done():
            self._trying = asyncio.create_task(self._tried(query, among))

    async def _tried(self, query: str, among: Mask | None) -> None:
        try:
            await self._first.ranker.warm()
            await self._first.ranker.score(query, among)
        except EncoderError as error:
            self._give_way(error)
        except Exception:
            LOGGER.exception("Retrying the first encoder failed")
        else:
            self._failed = False
