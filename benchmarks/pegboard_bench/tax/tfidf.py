"""An encoder that knows words alone: for the row of Tool Attention's table 5."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence

import numpy as np

from pegboard.model import Floats
from pegboard.retrieval.words import raw_words


class TfIdf:
    """Term frequency times inverse document frequency, smoothed as scikit-learn does, rows of length 1."""

    provider = "bench"

    def __init__(self, texts: Sequence[str]) -> None:
        counts = Counter(word for text in texts for word in set(raw_words(text)))
        self._places = {word: place for place, word in enumerate(sorted(counts))}
        self._idf = np.array([1 + math.log((1 + len(texts)) / (1 + counts[word])) for word in self._places], np.float32)
        self.model = f"tfidf-{len(texts)}"
        self.dimensions = max(1, len(self._places))

    async def encode(self, texts: Sequence[str]) -> Floats:
        rows = np.zeros((len(texts), self.dimensions), np.float32)
        for row, text in zip(rows, texts, strict=True):
            for word, times in Counter(raw_words(text)).items():
                if word in self._places:
                    row[self._places[word]] = times * self._idf[self._places[word]]
        return np.asarray(rows / np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1e-9), np.float32)
