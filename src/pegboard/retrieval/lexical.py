"""Word indexes: BM25F, and the keyword search of the lazy-loading PRD."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from copy import copy
from types import MappingProxyType

import numpy as np
from numpy.typing import NDArray

from pegboard.model import Floats, Tool
from pegboard.retrieval.postings import Postings, by_word
from pegboard.retrieval.slots import Slots
from pegboard.retrieval.words import FUNCTION_WORDS, raw_words, remembered, terms

K1 = 1.2
B = 0.75
FIELD_WEIGHTS: Mapping[str, float] = {"name": 3.0, "description": 1.0, "parameters": 0.5, "server": 1.0}
REMEMBERED = 8_192
"""Number of texts whose terms are cached: those of the tools that requests to a gateway bring again and again."""
EXACT_NAME = 1000.0
IN_NAME = 100.0
IN_DESCRIPTION = 10.0
IN_CATEGORY = 1.0
"""Each tier outweighs nine keywords in the tier below; queries with more keywords are rare."""
NO_DESCRIPTIONS: Mapping[str, str] = MappingProxyType({})


class Bm25f:
    """Scores of all documents for a query, shape (n,).

    Robertson, Zaragoza, Taylor: Simple BM25 extension to multiple weighted fields (CIKM 2004).

    Every score depends on how many documents there are and how long they are, so nothing but words is kept by
    document: what a term adds is computed when a query first has it.
    """

    def __init__(
        self,
        documents: Iterable[Mapping[str, str]],
        *,
        weights: Mapping[str, float] = FIELD_WEIGHTS,
        k1: float = K1,
        b: float = B,
    ) -> None:
        self._weights = weights
        self._k1 = k1
        self._b = b
        lengths: list[list[int]] = []

        def read() -> Iterator[list[Counter[str]]]:
            for document in documents:  # one at a time: the words of thousands would take more memory than the index
                counts = self._read(document)
                lengths.append(_lengths(counts))
                yield counts

        self._words = Postings.of_counts(read(), fields=len(weights))
        self._slots = Slots.first(len(lengths))
        self._lengths = np.array(lengths, np.int64).reshape(len(lengths), len(weights))
        self._forget()

    @property
    def nbytes(self) -> int:
        """Bytes of the postings, without the words."""
        return self._words.nbytes + self._lengths.nbytes

    def scores(self, query: str) -> Floats:
        """BM25F of every document; a term that occurs twice in the query counts twice."""
        out = np.zeros(self._slots.size, np.float32)
        for term, times in Counter(terms(query)).items():
            if (found := self._added(term)) is not None:
                slots, adds = found
                out[slots] += adds * np.float32(times)
        return self._slots.in_order(out)

    def changed(
        self,
        slots: Slots,
        gone: Iterable[tuple[int, Mapping[str, str]]],
        new: Iterable[tuple[int, Mapping[str, str]]],
    ) -> Bm25f:
        """The index after documents left slots and came into slots; equal to one that is built of those there are."""
        other = copy(self)
        other._slots = slots
        came = [(slot, self._read(document)) for slot, document in new]
        other._words = self._words.with_changed_counts(
            [(slot, by_word(self._read(document))) for slot, document in gone],
            [(slot, by_word(document)) for slot, document in came],
        )
        other._lengths = np.zeros((slots.size, len(self._weights)), np.int64)
        other._lengths[: len(self._lengths)] = self._lengths
        for slot, document in came:
            other._lengths[slot] = _lengths(document)
        other._forget()
        return other

    def _read(self, document: Mapping[str, str]) -> list[Counter[str]]:
        return [counted(document.get(field, "")) for field in self._weights]

    def _forget(self) -> None:
        self._adds: dict[str, tuple[NDArray[np.int32], Floats]] = {}
        self._scales = self._field_scales()

    def _field_scales(self) -> NDArray[np.float64]:
        """w_f / (1 - b + b * length_f / average length_f) by slot and field, shape (size, fields)."""
        totals = self._lengths[self._slots.of_place].sum(axis=0)
        averages = np.where(totals > 0, totals / max(1, len(self._slots.of_place)), 1.0)
        weights = np.array(list(self._weights.values()), np.float64)
        return np.asarray(weights / (1 - self._b + self._b * self._lengths / averages), np.float64)

    def _added(self, term: str) -> tuple[NDArray[np.int32], Floats] | None:
        """The slots of the documents that have a term, and what it adds to their scores; None without any."""
        if (known := self._adds.get(term)) is not None:
            return known
        slots, counts = self._words.with_counts(term)
        if not len(slots):
            return None
        idf = inverse_document_frequency(len(self._slots.of_place), np.array([len(slots)]))
        frequencies = np.zeros(len(slots), np.float64)
        for field in range(counts.shape[1]):
            frequencies += self._scales[slots, field] * counts[:, field]
        saturated = frequencies.astype(np.float32)
        found = slots, np.asarray(idf * saturated / (self._k1 + saturated), np.float32)
        self._adds[term] = found
        return found


class KeywordIndex:
    """Points of every tool for a query, shape (n,): exact name > keyword in name > keyword in description > category.

    ``category_descriptions``, by category name, count as words of the category.
    """

    def __init__(self, tools: Sequence[Tool], category_descriptions: Mapping[str, str] = NO_DESCRIPTIONS) -> None:
        names = [{" ".join(raw_words(name)) for name in (tool.name, *tool.aliases)} for tool in tools]
        categories = [tool.category or tool.server for tool in tools]
        self._size = len(names)
        self._names = Postings.of_words(names)
        self._in = {
            IN_NAME: Postings.of_words({word for name in of for word in name.split()} for of in names),
            IN_DESCRIPTION: Postings.of_words(set(raw_words(tool.description)) for tool in tools),
            IN_CATEGORY: Postings.of_words(
                set(raw_words(f"{category} {category_descriptions.get(category, '')}")) for category in categories
            ),
        }

    def scores(self, query: str) -> Floats:
        words = raw_words(query)
        phrase = " ".join(words)
        keywords = [word for word in dict.fromkeys(words) if word not in FUNCTION_WORDS] or words
        points, exact = np.zeros(self._size, np.float32), np.zeros(self._size, np.float32)
        for tier, tools in self._in.items():
            for word in keywords:
                points[tools.of(word)] += np.float32(tier)
        for name in {phrase, " ".join(keywords)}:
            exact[self._names.of(name)] = EXACT_NAME
        return points + exact


def inverse_document_frequency(documents: int, containing: NDArray[np.int64]) -> Floats:
    """idf(t) = ln(1 + (N - df + 0.5) / (df + 0.5)) of every term, never negative."""
    return np.asarray(np.log(1 + (documents - containing + 0.5) / (containing + 0.5)), np.float32)


@remembered(REMEMBERED)
def counted(text: str) -> Counter[str]:
    """How often each term occurs in a text. Remembered: do not modify the result."""
    return Counter(terms(text))


def _lengths(document: Sequence[Counter[str]]) -> list[int]:
    return [count.total() for count in document]
