"""BM25F: BM25 over weighted fields, every contribution computed when the index is built.

Robertson, Zaragoza, Taylor: Simple BM25 extension to multiple weighted fields (CIKM 2004).
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from pegboard.model import Floats
from pegboard.retrieval.words import terms

K1 = 1.2
B = 0.75
FIELD_WEIGHTS: Mapping[str, float] = {"name": 3.0, "description": 1.0, "parameters": 0.5, "server": 1.0}


def inverse_document_frequency(documents: int, containing: int) -> float:
    """idf(t) = ln(1 + (N - df + 0.5) / (df + 0.5)), never negative."""
    return math.log(1 + (documents - containing + 0.5) / (containing + 0.5))


@dataclass(frozen=True, slots=True)
class Postings:
    """The documents of one term, and what the term adds to the score of each."""

    documents: np.ndarray
    contributions: Floats


class Bm25f:
    """Scores of all documents for a query, shape (n,)."""

    def __init__(
        self,
        documents: Sequence[Mapping[str, str]],
        *,
        weights: Mapping[str, float] = FIELD_WEIGHTS,
        k1: float = K1,
        b: float = B,
    ) -> None:
        self._size = len(documents)
        counts = {field: [Counter(terms(document.get(field, ""))) for document in documents] for field in weights}
        frequencies = _weighted_frequencies(counts, weights, b)
        self._postings = {term: self._posting(of_documents, k1) for term, of_documents in frequencies.items()}

    def _posting(self, frequencies: Mapping[int, float], k1: float) -> Postings:
        tf = np.fromiter(frequencies.values(), np.float32, len(frequencies))
        idf = inverse_document_frequency(self._size, len(frequencies))
        return Postings(np.fromiter(frequencies, np.int64, len(frequencies)), (idf * tf / (k1 + tf)).astype(np.float32))

    def scores(self, query: str) -> Floats:
        """BM25F of every document; a term that stands twice in the query counts twice."""
        out = np.zeros(self._size, np.float32)
        for term, times in _counted(query).items():
            posting = self._postings.get(term)
            if posting is not None:
                out[posting.documents] += posting.contributions * np.float32(times)
        return out


@lru_cache(maxsize=1024)
def _counted(query: str) -> Counter[str]:
    return Counter(terms(query))


def _weighted_frequencies(
    counts: Mapping[str, Sequence[Counter[str]]], weights: Mapping[str, float], b: float
) -> dict[str, dict[int, float]]:
    """For each term and document: sum over fields of w_f * tf_f / (1 - b + b * length_f / average length_f)."""
    frequencies: dict[str, dict[int, float]] = {}
    for field, of_documents in counts.items():
        lengths = [count.total() for count in of_documents]
        average = sum(lengths) / len(lengths) if any(lengths) else 1.0
        for index, count in enumerate(of_documents):
            scale = weights[field] / (1 - b + b * lengths[index] / average)
            for term, times in count.items():
                of_term = frequencies.setdefault(term, {})
                of_term[index] = of_term.get(index, 0.0) + scale * times
    return frequencies
