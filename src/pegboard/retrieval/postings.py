"""For each word the slots of the documents that have it."""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

Numbers = NDArray[np.int32]
Counts = NDArray[np.unsignedinteger]
Counted = Sequence[Mapping[str, int]]
"""How often each word occurs in each field of a document."""
NONE = np.zeros(0, np.int32)


class Postings:
    """Compressed sparse columns, and beside them the postings of words that documents came to or left since.

    The slots of word t, and how often each field of their documents has it, shape (df, fields), are from ``start[t]``
    to ``start[t + 1]``. Postings do not change: `changed` returns others, which share what is the same.

    >>> postings = Postings.of_words([{"tide", "high"}, {"tide"}])
    >>> other = postings.changed(gone=[(0, {"tide", "high"})], new=[])
    >>> postings.of("tide").tolist(), other.of("tide").tolist(), other.of("high").tolist()
    ([0, 1], [1], [])
    """

    def __init__(
        self,
        number: Mapping[str, int],
        start: NDArray[np.int64],
        slots: Numbers,
        counts: Counts,
        differing: Mapping[str, tuple[Numbers, Counts]],
    ) -> None:
        self._number = number
        self._start = start
        self._slots = slots
        self._counts = counts
        self._differing = differing

    @classmethod
    def of_words(cls, documents: Iterable[Iterable[str]]) -> Postings:
        """Postings of documents without fields, each in the slot of its place."""
        return cls.of_counts(([dict.fromkeys(words, 1)] for words in documents), fields=0)

    @classmethod
    def of_counts(cls, documents: Iterable[Counted], *, fields: int) -> Postings:
        """Postings of documents, each in the slot of its place; ``fields`` is the number of fields."""
        number: dict[str, int] = {}
        words, of_slot, of_field, times = array("i"), array("i"), array("B"), array("i")
        size = 0
        for slot, document in enumerate(documents):
            size = slot + 1
            for field, count in enumerate(document):
                for word, often in count.items():
                    words.append(number.setdefault(word, len(number)))
                    of_slot.append(slot)
                    of_field.append(field)
                    times.append(often)
        cells = np.frombuffer(words, np.int32).astype(np.int64) * size + np.frombuffer(of_slot, np.int32)
        distinct, row = np.unique(cells, return_inverse=True)
        counts = np.zeros((len(distinct), fields), _width(max(times, default=0)))
        if fields:
            counts[row, np.frombuffer(of_field, np.uint8)] = np.frombuffer(times, np.int32)
        of_word, slots = np.divmod(distinct, max(1, size))
        start = np.concatenate([[0], np.cumsum(np.bincount(of_word, minlength=len(number)))])
        return cls(number, start, slots.astype(np.int32), counts, {})

    @property
    def nbytes(self) -> int:
        """Bytes of the postings, without the words."""
        return self._slots.nbytes + self._counts.nbytes + self._start.nbytes

    def of(self, word: str) -> Numbers:
        """The slots of the documents that have a word, in no order, shape (df,)."""
        return self.with_counts(word)[0]

    def with_counts(self, word: str) -> tuple[Numbers, Counts]:
        """Those slots, and how often each field has the word, shape (df, fields)."""
        if (found := self._differing.get(word)) is not None:
            return found
        number = self._number.get(word)
        if number is None:
            return NONE, np.zeros((0, self._counts.shape[1]), np.uint16)
        of_word = slice(self._start[number], self._start[number + 1])
        return self._slots[of_word], self._counts[of_word]

    def changed(self, gone: Iterable[tuple[int, Iterable[str]]], new: Iterable[tuple[int, Iterable[str]]]) -> Postings:
        """The postings after documents left slots and came into slots, each with its words."""
        return self.with_changed_counts(gone, [(slot, dict.fromkeys(words, ())) for slot, words in new])

    def with_changed_counts(
        self, gone: Iterable[tuple[int, Iterable[str]]], new: Iterable[tuple[int, Mapping[str, Sequence[int]]]]
    ) -> Postings:
        """Like `changed`, for documents of fields: the new ones with how often each field has each word."""
        differing = dict(self._differing)
        changed = Postings(self._number, self._start, self._slots, self._counts, differing)
        leaving: dict[str, list[int]] = {}
        for slot, words in gone:
            for word in words:
                leaving.setdefault(word, []).append(slot)
        for word, left in leaving.items():
            slots, counts = changed.with_counts(word)
            stays = ~np.isin(slots, left)
            differing[word] = slots[stays], counts[stays]
        for slot, rows in new:
            for word, row in rows.items():
                slots, counts = changed.with_counts(word)
                more = np.array([row], _width(max(row, default=0)))
                differing[word] = np.append(slots, np.int32(slot)), np.concatenate([counts, more])
        return changed


def by_word(document: Counted) -> Mapping[str, Sequence[int]]:
    """How often each field of a document has each of its words."""
    rows: dict[str, list[int]] = {}
    for field, count in enumerate(document):
        for word, often in count.items():
            rows.setdefault(word, [0] * len(document))[field] = often
    return rows


def _width(largest: int) -> type[np.uint16] | type[np.uint32]:
    return np.uint16 if largest < 2**16 else np.uint32
