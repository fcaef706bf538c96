"""Word indexes: BM25F, and the keyword search of the lazy-loading PRD."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from functools import lru_cache
from types import MappingProxyType

import numpy as np
from numpy.typing import NDArray

from pegboard.model import Floats, Tool
from pegboard.retrieval.words import FUNCTION_WORDS, raw_words, terms

K1 = 1.2
B = 0.75
FIELD_WEIGHTS: Mapping[str, float] = {"name": 3.0, "description": 1.0, "parameters": 0.5, "server": 1.0}
REMEMBERED = 65_536
"""Number of texts whose terms are cached, so that indexing a changed catalog costs only its new texts."""
EXACT_NAME = 1000.0
IN_NAME = 100.0
IN_DESCRIPTION = 10.0
IN_CATEGORY = 1.0
"""Each tier outweighs nine keywords in the tier below; queries with more keywords are rare."""
NO_DESCRIPTIONS: Mapping[str, str] = MappingProxyType({})


class Bm25f:
    """Scores of all documents for a query, shape (n,), as a sparse matrix of the score that each term adds to each.

    Robertson, Zaragoza, Taylor: Simple BM25 extension to multiple weighted fields (CIKM 2004).

    Compressed sparse columns: the documents of term t, and the scores that t adds, are from ``_start[t]`` to
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
        """Bytes of the matrix, without the term dictionary."""
        return self._documents.nbytes + self._adds.nbytes + self._start.nbytes

    def scores(self, query: str) -> Floats:
        """BM25F of every document; a term that occurs twice in the query counts twice."""
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


class KeywordIndex:
    """Points of every tool for a query, shape (n,): exact name > keyword in name > keyword in description > category.

    ``category_descriptions``, by category name, count as words of the category.
    """

    def __init__(self, tools: Sequence[Tool], category_descriptions: Mapping[str, str] = NO_DESCRIPTIONS) -> None:
        self._names = [[" ".join(raw_words(name)) for name in (tool.name, *tool.aliases)] for tool in tools]
        self._name_words = [frozenset(word for name in names for word in name.split()) for names in self._names]
        self._descriptions = [frozenset(raw_words(tool.description)) for tool in tools]
        self._categories = [
            frozenset(raw_words(f"{category} {category_descriptions.get(category, '')}"))
            for category in (tool.category or tool.server for tool in tools)
        ]

    def scores(self, query: str) -> Floats:
        words = raw_words(query)
        phrase = " ".join(words)
        keywords = [word for word in dict.fromkeys(words) if word not in FUNCTION_WORDS] or words
        content = " ".join(keywords)
        points = (
            EXACT_NAME * (phrase in names or content in names)
            + IN_NAME * sum(word in in_name for word in keywords)
            + IN_DESCRIPTION * sum(word in in_description for word in keywords)
            + IN_CATEGORY * sum(word in in_category for word in keywords)
            for names, in_name, in_description, in_category in zip(
                self._names, self._name_words, self._descriptions, self._categories, strict=True
            )
        )
        return np.fromiter(points, np.float32, len(self._names))


def inverse_document_frequency(documents: int, containing: NDArray[np.int64]) -> Floats:
    """idf(t) = ln(1 + (N - df + 0.5) / (df + 0.5)) of every term, never negative."""
    return np.asarray(np.log(1 + (documents - containing + 0.5) / (containing + 0.5)), np.float32)


@lru_cache(maxsize=REMEMBERED)
def counted(text: str) -> Counter[str]:
    """How often each term occurs in a text. Cached: do not modify the result."""
    return Counter(terms(text))
