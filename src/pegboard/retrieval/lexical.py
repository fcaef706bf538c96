"""BM25F: BM25 over weighted fields, as a sparse matrix of what each term adds to each document.

Robertson, Zaragoza, Taylor: Simple BM25 extension to multiple weighted fields (CIKM 2004).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from pegboard.model import Floats
from pegboard.retrieval.words import terms

K1 = 1.2
B = 0.75
FIELD_WEIGHTS: Mapping[str, float] = {"name": 3.0, "description": 1.0, "parameters": 0.5, "server": 1.0}

REMEMBERED = 65_536
"""Texts whose terms are kept: a catalog that changes is indexed again at the price of what is new in it."""


def inverse_document_frequency(documents: int, containing: NDArray[np.int64]) -> Floats:
    """idf(t) = ln(1 + (N - df + 0.5) / (df + 0.5)) of every term, never negative."""
    return np.asarray(np.log(1 + (documents - containing + 0.5) / (containing + 0.5)), np.float32)


class Bm25f:
    """Scores of all documents for a query, shape (n,).

    Compressed sparse columns: the documents of term t, and what t adds to each, stand from ``_start[t]`` to
    ``_start[t + 1]``.
    """

    def __init__(
        self,
        documents: Sequence[Mapping[str, str]],
        *,
        weights: Mapping[str, float] = FIELD_WEIGHTS,
        k1: float = K1,
        b: float = B,
    ) -> None:
        self._size = len(documents)
        self._number: dict[str, int] = {}
        cells, frequencies = self._frequencies(documents, weights, b)
        of_term, self._documents = np.divmod(cells, max(1, self._size))
        containing = np.bincount(of_term, minlength=len(self._number))
        self._start = np.concatenate([[0], np.cumsum(containing)])
        idf = inverse_document_frequency(self._size, containing)
        self._adds = np.asarray(idf[of_term] * frequencies / (k1 + frequencies), np.float32)

    @property
    def nbytes(self) -> int:
        """Memory of the matrix, without the words that number its columns."""
        return self._documents.nbytes + self._adds.nbytes + self._start.nbytes

    def scores(self, query: str) -> Floats:
        """BM25F of every document; a term that stands twice in the query counts twice."""
        out = np.zeros(self._size, np.float32)
        for term, times in counted(query).items():
            number = self._number.get(term)
            if number is not None:
                of_term = slice(self._start[number], self._start[number + 1])
                out[self._documents[of_term]] += self._adds[of_term] * np.float32(times)
        return out

    def _frequencies(
        self, documents: Sequence[Mapping[str, str]], weights: Mapping[str, float], b: float
    ) -> tuple[NDArray[np.int64], Floats]:
        """Sum over fields of w_f * tf_f / (1 - b + b * length_f / average length_f) by cell (term * n + document)."""
        cells: list[int] = []
        values: list[float] = []
        for field, weight in weights.items():
            counts = [counted(document.get(field, "")) for document in documents]
            lengths = [count.total() for count in counts]
            average = sum(lengths) / len(lengths) if any(lengths) else 1.0
            for place, (count, length) in enumerate(zip(counts, lengths, strict=True)):
                scale = weight / (1 - b + b * length / average)
                for term, times in count.items():
                    cells.append(self._number.setdefault(term, len(self._number)) * self._size + place)
                    values.append(scale * times)
        distinct, inverse = np.unique(np.array(cells, np.int64), return_inverse=True)
        return distinct, np.asarray(np.bincount(inverse, values, len(distinct)), np.float32)


@lru_cache(maxsize=REMEMBERED)
def counted(text: str) -> Counter[str]:
    """How often each term stands in a text. Shared: not to be changed."""
    return Counter(terms(text))
