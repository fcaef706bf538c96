"""Lists of near vectors, one bit a dimension: which rows are worth a look is told by counting bits.

A list that grows too long is split in two, by its own rows alone, so that a change never costs more than one list does.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from pegboard.model import Floats, Mask

LONGEST = 2048
"""Rows of a list, beyond which it is split."""
ROUNDS = 5
"""Of 2-means when a list is split."""
DEAD = 0.25
"""Share of removed rows at which a list is cleaned."""
ONES = np.array([number.bit_count() for number in range(256)], np.uint8)

Rows = NDArray[np.int32]
Bits = NDArray[np.uint64]
Value = TypeVar("Value", bound=np.generic)


class BitList:
    """Rows in the order added, and their bits, shape (words, n): words first, because they are summed over."""

    __slots__ = ("_bits", "_rows", "gone", "used")

    def __init__(self, rows: Rows, bits: Bits) -> None:
        self._rows = rows
        self._bits = bits
        self.used = len(rows)
        self.gone = 0

    @property
    def rows(self) -> Rows:
        return self._rows[: self.used]

    @property
    def bits(self) -> Bits:
        return self._bits[:, : self.used]

    def add(self, rows: Rows, bits: Bits) -> None:
        total = self.used + len(rows)
        if total > len(self._rows):
            room = max(16, total + total // 2)
            more, wider = np.empty(room, np.int32), np.empty((len(bits), room), np.uint64)
            more[: self.used], wider[:, : self.used] = self.rows, self.bits
            self._rows, self._bits = more, wider
        self._rows[self.used : total], self._bits[:, self.used : total] = rows, bits
        self.used = total

    def keep(self, kept: Mask) -> None:
        self._rows, self._bits = self.rows[kept].copy(), np.ascontiguousarray(self.bits[:, kept])
        self.used, self.gone = len(self._rows), 0


class BitLists:
    """``centre``, shape (d,), is what a dimension has to exceed to be a one; ``vectors_of`` gives the vectors of rows,
    shape (n, d), to split a list by; ``alive`` says which rows are still there; ``freed`` is told rows that no list
    has any more."""

    def __init__(
        self,
        centre: Floats,
        vectors_of: Callable[[Rows], Floats],
        alive: Callable[[Rows], Mask],
        freed: Callable[[Rows], None],
        *,
        longest: int = LONGEST,
    ) -> None:
        self._centre = centre
        self._vectors_of = vectors_of
        self._alive = alive
        self._freed = freed
        self._longest = longest
        words = -(-len(centre) // 64)
        self._lists = [BitList(np.empty(0, np.int32), np.empty((words, 0), np.uint64))]
        self._centroids: Floats = np.zeros((1, len(centre)), np.float32)
        self._list_of: Rows = np.zeros(0, np.int32)
        self._bits_of: Bits = np.zeros((0, words), np.uint64)
        self._draw = np.random.default_rng(0)

    def __len__(self) -> int:
        return len(self._lists)

    def add(self, rows: Rows, vectors: Floats) -> None:
        """Put each row into the list with the nearest centroid, and split the lists that became too long."""
        bits = bits_of(vectors, self._centre)
        places = (vectors @ self._centroids[: len(self)].T).argmax(axis=1)
        self._list_of = grown(self._list_of, int(rows.max()) + 1)
        self._bits_of = grown(self._bits_of, int(rows.max()) + 1)
        self._bits_of[rows] = bits.T
        for number in np.unique(places).tolist():
            here = places == number
            self._lists[number].add(rows[here], bits[:, here])
            self._list_of[rows[here]] = number
            self._split(number)

    def remove(self, rows: Rows) -> None:
        """Count rows that are no longer alive, and clean the lists that have many of them."""
        numbers, counts = np.unique(self._list_of[rows], return_counts=True)
        for number, count in zip(numbers.tolist(), counts.tolist(), strict=True):
            each = self._lists[number]
            each.gone += count
            if each.gone > DEAD * each.used:
                self._clean(each)

    def nearest(self, query: Floats) -> list[BitList]:
        """The lists that are not empty, the nearest one first."""
        order = np.argsort(-(self._centroids[: len(self)] @ query), kind="stable")
        return [each for number in order.tolist() if (each := self._lists[number]).used]

    def differing(self, query: Floats, lists: Sequence[BitList]) -> tuple[Rows, NDArray[np.uint16]]:
        """Rows of these lists, and the number of bits in which each differs from the query.

        The bits of a list are counted while a core's cache holds them; then those of all lists are added at once.
        """
        wanted = bits_of(query[None], self._centre)
        counts = np.empty((len(wanted), sum(each.used for each in lists)), np.uint8)
        start = 0
        for each in lists:
            counts[:, start : start + each.used] = counted(each.bits ^ wanted)
            start += each.used
        return np.concatenate([each.rows for each in lists]), counts.sum(axis=0, dtype=np.uint16)

    def differing_rows(self, query: Floats, rows: Rows) -> NDArray[np.uint16]:
        """The number of bits in which each of these rows differs from the query, whatever its list."""
        wanted = bits_of(query[None], self._centre)
        return np.asarray(counted(self._bits_of[rows] ^ wanted.T).sum(axis=1, dtype=np.uint16))

    def _clean(self, each: BitList) -> None:
        kept = self._alive(each.rows)
        self._freed(each.rows[~kept])
        each.keep(kept)

    def _split(self, number: int) -> None:
        waiting = [number]
        while waiting:
            number = waiting.pop()
            each = self._lists[number]
            if each.used <= self._longest:
                continue
            self._clean(each)
            if each.used <= self._longest:
                continue
            vectors = self._vectors_of(each.rows)
            second, centroids = halves(vectors, self._draw)
            other = BitList(each.rows[second].copy(), np.ascontiguousarray(each.bits[:, second]))
            each.keep(~second)
            self._list_of[other.rows] = len(self)
            self._centroids = grown(self._centroids, len(self) + 1)
            self._centroids[[number, len(self)]] = centroids
            waiting += [number, len(self)]
            self._lists.append(other)


def halves(vectors: Floats, draw: np.random.Generator) -> tuple[Mask, Floats]:
    """Two groups of near vectors: which are in the second, and the centroids, shape (2, d), of length 1."""
    centroids = vectors[draw.choice(len(vectors), 2, replace=False)].copy()
    for _ in range(ROUNDS):
        towards = vectors @ centroids.T
        second = np.asarray(towards[:, 1] > towards[:, 0])
        if not second.any() or second.all():  # they are all alike
            second = np.arange(len(vectors)) % 2 == 1
        for place, members in enumerate((~second, second)):
            mean = vectors[members].sum(axis=0)
            centroids[place] = mean / max(float(np.linalg.norm(mean)), 1e-12)
    return second, centroids


def bits_of(vectors: Floats, centre: Floats) -> Bits:
    """One bit a dimension, shape (words, n).

    >>> bits_of(np.array([[1.0, -1.0, 1.0]], np.float32), np.zeros(3, np.float32)).tolist()
    [[5]]
    """
    packed = np.packbits(vectors > centre, axis=1, bitorder="little")
    whole = np.zeros((len(vectors), -(-vectors.shape[1] // 64) * 8), np.uint8)
    whole[:, : packed.shape[1]] = packed
    return np.ascontiguousarray(whole.view(np.uint64).T)


def counted(words: Bits) -> NDArray[np.uint8]:
    """The number of ones of each word."""
    if hasattr(np, "bitwise_count"):  # NumPy 2
        return np.asarray(np.bitwise_count(words))
    by_byte = ONES[np.ascontiguousarray(words).view(np.uint8)].reshape(*words.shape, 8)
    return np.asarray(by_byte.sum(axis=-1, dtype=np.uint8))


def lowest(distances: NDArray[np.uint16], number: int) -> NDArray[np.intp]:
    """Where the ``number`` lowest distances stand: there are few different ones, so they are counted, not sorted.

    >>> lowest(np.array([3, 1, 2, 1, 2], np.uint16), 3).tolist()
    [1, 3, 2]
    """
    highest = int(np.searchsorted(np.cumsum(np.bincount(distances)), number))
    below = np.flatnonzero(distances < highest)
    return np.concatenate([below, np.flatnonzero(distances == highest)])[:number]


def grown(column: NDArray[Value], length: int) -> NDArray[Value]:
    """The column with room for so many rows; it doubles, so that growth costs a constant a row."""
    if length <= len(column):
        return column
    wider = np.zeros((max(length, 2 * len(column), 1024), *column.shape[1:]), column.dtype)
    wider[: len(column)] = column
    return wider
