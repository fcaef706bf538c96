"""The scanner's second stage: how much each sentence of a definition is like an order to the model (decision 43).

A linear model over words reads every sentence. The few that it does not rule out are encoded by the shipped encoder,
and a small network over the vector and the first model's score judges them. `scripts/fit_scanner.py` fits both.
"""

from __future__ import annotations

from collections import defaultdict
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
"""Least weight of a sentence that is suspicious only together with other findings."""
NEARLY = 0.49
"""Its weight just below the bound."""
MOST_ENCODED = 48
"""Sentences of a definition that are encoded at most, those with the highest scores: it bounds the time."""
FEW = 8
"""Sentences that are encoded one by one: together they would be filled up to the longest."""
MOST_SCORES = 4_096
"""Sentences whose score is remembered: servers repeat them from tool to tool."""
VECTOR_SCALE, WORDS_SCALE, WORDS_MOST = 6.0, 1 / 3, 8.0
"""What makes vectors and scores by words inputs of the network."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Network:
    """One hidden layer of rectified units over a sentence's vector and its score by words. Its output is a logit.

    ``hidden``, shape (385, n), ``hidden_bias`` and ``out``, shape (n,).
    """

    hidden: Floats
    hidden_bias: Floats
    out: Floats
    out_bias: float

    @staticmethod
    def inputs(vectors: Floats, by_words: Floats) -> Floats:
        words = np.clip(by_words, -WORDS_MOST, WORDS_MOST) * WORDS_SCALE
        return np.asarray(np.hstack([vectors * VECTOR_SCALE, words[:, None]]), np.float32)

    def __call__(self, vectors: Floats, by_words: Floats) -> Floats:
        """Logits, shape (n,)."""
        units = np.maximum(self.inputs(vectors, by_words) @ self.hidden + self.hidden_bias, 0)
        return np.asarray(units @ self.out + self.out_bias, np.float32)


@dataclass(frozen=True, slots=True, kw_only=True)
class Weights:
    """What was fitted, in `meaning.npz`. Scores are logits.

    ``words``, int8, shape (65,536,), times ``scale``: weights of hashed words. Sentences below ``gate`` by words are
    not encoded; from ``doubtful`` and ``suspicious`` on the network's score counts.
    """

    words: NDArray[np.int8]
    scale: float
    words_bias: float
    network: Network
    gate: float
    doubtful: float
    suspicious: float

    @classmethod
    def shipped(cls) -> Weights:
        with np.load(BytesIO((files("pegboard.trust") / "meaning.npz").read_bytes())) as read:
            layers = {name: read[name].astype(np.float32) for name in ("hidden", "hidden_bias", "out")}
            names = ("scale", "words_bias", "gate", "doubtful", "suspicious")
            return cls(
                words=read["words"],
                network=Network(out_bias=float(read["out_bias"]), **layers),
                **{name: float(read[name]) for name in names},
            )


class MeaningStage:
    """Judges sentences. Any number of threads may use it at the same time."""

    def __init__(self, weights: Weights, encode: Callable[[Sequence[str]], Floats]) -> None:
        self._weights = weights
        self._encode = encode
        self._features = WordFeatures()
        self._scores: dict[str, float] = {}

    def findings(self, texts: Sequence[ScannedText]) -> Iterator[Finding]:
        """At most one finding: the sentence with the highest score, if that is high enough."""
        yield from self.judged([texts])[0]

    def judged(self, read: Sequence[Sequence[ScannedText]]) -> tuple[list[Finding], set[int]]:
        """The same of several strings, each in the forms in which it is read; and the places of those that are not
        harmless, or were not read whole."""
        sentences: defaultdict[str, list[tuple[int, ScannedText]]] = defaultdict(list)
        for place, texts in enumerate(read):
            for text in texts:
                for sentence in windows(text.plain):
                    sentences[sentence].append((place, text))
        if not sentences:
            return [], set()
        scores = self.scores(list(sentences))
        said = list(sentences.items())
        doubtful = scores >= self._weights.doubtful
        unsure = {place for at in np.flatnonzero(doubtful | np.isnan(scores)) for place, _ in said[at][1]}
        if not doubtful.any():
            return [], unsure
        scores[~doubtful] = -np.inf
        sentence, [(_, text), *_] = said[int(scores.argmax())]
        return [text.finding(RULE, self._weight(float(scores.max())), sentence)], unsure

    def scores(self, sentences: Sequence[str]) -> Floats:
        """Logits, shape (n,); -inf for sentences that words rule out, NaN for those beyond `MOST_ENCODED`."""
        found = np.full(len(sentences), -np.inf, np.float32)
        by_words = self.by_words(sentences)
        passed = np.flatnonzero(by_words >= self._weights.gate)
        passed = passed[np.argsort(-by_words[passed], kind="stable")]
        found[passed[MOST_ENCODED:]] = np.nan
        passed = passed[:MOST_ENCODED]
        if len(passed):
            found[passed] = self._by_meaning([sentences[int(each)] for each in passed], by_words[passed])
        return found

    def _by_meaning(self, sentences: Sequence[str], by_words: Floats) -> list[float]:
        """Logits of the network; a sentence is encoded once."""
        known = {sentence: self._scores.get(sentence) for sentence in sentences}
        new = [place for place, sentence in enumerate(sentences) if known[sentence] is None]
        if new:
            vectors = self._vectors([sentences[place] for place in new])
            read = self._weights.network(vectors, by_words[new]).tolist()
            scored = {sentences[place]: score for place, score in zip(new, read, strict=True)}
            if len(self._scores) + len(scored) > MOST_SCORES:
                self._scores.clear()
            self._scores.update(scored)
            known |= scored
        return [score for score in known.values() if score is not None]

    def _vectors(self, sentences: Sequence[str]) -> Floats:
        if len(sentences) > FEW:
            return self._encode(sentences)
        return np.vstack([self._encode([sentence]) for sentence in sentences])

    def forget(self) -> None:
        """Encode every sentence anew."""
        self._scores.clear()

    def by_words(self, sentences: Sequence[str]) -> Floats:
        """Logits of the linear model over words, shape (n,)."""
        features, places = self._features.of(sentences)
        number = np.bincount(places, minlength=len(sentences))
        total = np.bincount(places, self._weights.words[features], minlength=len(sentences)) * self._weights.scale
        return np.asarray(total / np.sqrt(np.maximum(number, 1)) + self._weights.words_bias, np.float32)

    def _weight(self, score: float) -> float:
        """From `SUSPICIOUS` to 0.85, as the score exceeds the bound; from `DOUBTFUL` on below it."""
        above = score - self._weights.suspicious
        if above >= 0:
            return SUSPICIOUS + 0.35 * (1 - float(np.exp(-above)))
        doubt = self._weights.suspicious - self._weights.doubtful
        return DOUBTFUL + (NEARLY - DOUBTFUL) * (1 + above / doubt)


@cache
def shipped_stage() -> MeaningStage:
    """The stage with the shipped weights and encoder. Nothing is loaded before a first sentence is judged."""
    return MeaningStage(Weights.shipped(), OnnxEncoder(threads=1).encode_now)
