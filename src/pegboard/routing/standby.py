"""Two encoders, of which one answers: query, tools, fusion and limits change together, and vectors never meet."""

from __future__ import annotations

import asyncio
import logging
from dataclasses import dataclass

from pegboard.errors import EncoderError
from pegboard.model import Mask, Scores
from pegboard.retrieval import Progress, Ranker
from pegboard.routing.profiles import Profile
from pegboard.seams import Encoder

LOGGER = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class Way:
    """A ranker over the vectors of one encoder, and the profile whose limits are right for its scores."""

    profile: Profile
    ranker: Ranker
    encoder: Encoder

    def encoder_of(self, scores: Scores | None) -> str:
        """The model whose vectors are in the scores; empty where none are."""
        if scores is None or scores.query_vector is None:
            return ""
        return f"{self.encoder.provider}/{self.encoder.model}"


class Ways:
    """The first way, and one that answers while the encoder of the first does not.

    Once it failed nobody waits for the first: it is tried again beside the turns, with what they ask, until it answers.
    """

    def __init__(self, first: Way, fallback: Way | None = None) -> None:
        self._first = first
        self._fallback = fallback
        self._failed = False
        self._trying: asyncio.Task[None] | None = None

    async def warm(self, progress: Progress | None = None) -> None:
        """Build what both need, so that the second can answer at once. Raises EncoderError where none works."""
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
            LOGGER.warning("The fallback's encoder cannot be used: %s", error)

    async def relevance(self, query: str, among: Mask) -> tuple[Scores | None, Way]:
        """The scores and the way they came; None where relevance is unknown: no text (P4), no tool, or no encoder."""
        if not query.strip() or not among.size:
            return None, self._first
        try:
            return await self.score(query, among)
        except EncoderError:
            LOGGER.exception("The encoder failed; every eligible tool passes")
            return None, self._first

    async def score(self, query: str, among: Mask | None = None) -> tuple[Scores, Way]:
        """The scores, and the way they came; only tools of ``among`` need one. Raises EncoderError where no way is
        open."""
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
        LOGGER.debug("The fallback ranks: %s", error)

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
            LOGGER.exception("Trying the first encoder again failed")
        else:
            self._failed = False
