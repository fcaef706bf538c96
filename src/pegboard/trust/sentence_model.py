"""The scanner's second stage: how much each sentence of a definition is like an order to the model (decision 43).

A linear model over words reads every sentence. The few that it does not rule out are encoded by the shipped encoder,
and a logistic regression over the vector and the first model's score judges them. `scripts/fit_scanner.py` fits both.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from io import BytesIO

import numpy as np
from numpy.typing import NDArray

from pegboard.model import Floats
from pegboard.retrieval.encoders.onnx import OnnxEncoder
from pegboard.trust.findings import SUSPICIOUS, Finding, ScannedText
from pegboard.trust.windows import windows
from pegboard.trust.word_features import WordFeatures

RULE = "meaning"
DOUBTFUL = 0.35
"""Weight of a sentence that is suspicious only together with other findings."""
MARGIN = 1.0
"""Logits above the fitted bound from which a sentence is suspicious alone: the bound was set on mostly English
tools, and honest sentences of other languages come near it."""
MOST_ENCODED = 48
"""Sentences of a definition that are encoded at most, those with the highest scores: it bounds the time."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Weights:
    """What was fitted, in `meaning.npz`. Scores are logits.

    ``words``, int8, shape (65,536,), times ``scale``: weights of hashed words. ``vector``, shape (384,), ``of_words``
    and ``bias``: the second model. Sentences below ``gate`` by words are not encoded; from ``doubtful`` and
    ``suspicious`` (and `MARGIN`) on the second model's score counts.
    """

    words: NDArray[np.int8]
    scale: float
    words_bias: float
    vector: Floats
    of_words: float
    bias: float
    gate: float
    doubtful: float
    suspicious: float

    @classmethod
    def shipped(cls) -> Weights:
        with np.load(BytesIO((files("pegboard.trust") / "meaning.npz").read_bytes())) as read:
            numbers = {name: float(read[name]) for name in read.files if name not in ("words", "vector")}
            return cls(words=read["words"], vector=read["vector"], **numbers)


class MeaningStage:
    """Judges sentences. Any number of threads may use it at the same time."""

    def __init__(self, weights: Weights, encode: Callable[[Sequence[str]], Floats]) -> None:
        self._weights = weights
        self._encode = encode
        self._features = WordFeatures()

    def findings(self, texts: Sequence[ScannedText]) -> Iterator[Finding]:
        """At most one finding: the sentence with the highest score, if that is high enough."""
        sentences: dict[str, ScannedText] = {}
        for text in texts:
            for sentence in windows(text.plain):
                sentences.setdefault(sentence, text)
        scores = self.scores(list(sentences))
        if len(scores) and (highest := float(scores.max())) >= self._weights.doubtful:
            sentence, text = list(sentences.items())[int(scores.argmax())]
            yield text.finding(RULE, self._weight(highest), sentence)

    def scores(self, sentences: Sequence[str]) -> Floats:
        """Logits, shape (n,); -inf for sentences that were not encoded."""
        found = np.full(len(sentences), -np.inf, np.float32)
        by_words = self.by_words(sentences)
        passed = np.flatnonzero(by_words >= self._weights.gate)
        passed = passed[np.argsort(-by_words[passed], kind="stable")][:MOST_ENCODED]
        if len(passed):
            vectors = self._encode([sentences[int(each)] for each in passed])
            found[passed] = (
                vectors @ self._weights.vector + self._weights.of_words * by_words[passed] + self._weights.bias
            )
        return found

    def by_words(self, sentences: Sequence[str]) -> Floats:
        """Logits of the linear model over words, shape (n,)."""
        features, places = self._features.of(sentences)
        number = np.bincount(places, minlength=len(sentences))
        total = np.bincount(places, self._weights.words[features], minlength=len(sentences)) * self._weights.scale
        return np.asarray(total / np.sqrt(np.maximum(number, 1)) + self._weights.words_bias, np.float32)

    def _weight(self, score: float) -> float:
        """From `SUSPICIOUS` to 0.85, as the score exceeds the bound; `DOUBTFUL` below it."""
        above = score - self._weights.suspicious - MARGIN
        return DOUBTFUL if above < 0 else SUSPICIOUS + 0.35 * (1 - float(np.exp(-above)))


@cache
def shipped_stage() -> MeaningStage:
    """The stage with the shipped weights and encoder. Nothing is loaded before a first sentence is judged."""
    return MeaningStage(Weights.shipped(), OnnxEncoder(threads=1).encode_now)
