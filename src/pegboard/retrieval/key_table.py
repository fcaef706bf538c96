"""Which documents have a key in common: a sorted table, of twelve bytes for each key of each document."""

from __future__ import annotations

from collections.abc import Hashable, Iterable

import numpy as np
from numpy.typing import NDArray

Numbers = NDArray[np.int32]
Keys = NDArray[np.int64]
Rows = Iterable[tuple[int, Iterable[Hashable]]]
"""Slots of documents, each with its keys, none of them twice."""


class KeyTable:
    """The slots of the documents that have a key. Keys are kept as 64-bit hashes of this process.

    A table does not change: `changed` returns another, at the cost of a copy.

    >>> table = KeyTable([(0, ["high tide", "wind"]), (1, ["wind"])])
    >>> other = table.changed(gone=[(1, ["wind"])], new=[(7, ["high tide"])])
    >>> sorted(table.of("wind").tolist()), sorted(other.of("high tide").tolist()), other.of("wind").tolist()
    ([0, 1], [0, 7], [0])
    """

    def __init__(self, rows: Rows) -> None:
        keys, slots = _pairs(rows)
        order = np.argsort(keys, kind="stable")
        self._keys: Keys = keys[order]
        self._slots: Numbers = slots[order]

    def of(self, key: Hashable) -> Numbers:
        """The slots of the documents that have a key, in no order."""
        hashed = hash(key)
        return self._slots[self._keys.searchsorted(hashed, "left") : self._keys.searchsorted(hashed, "right")]

    def changed(self, gone: Rows, new: Rows) -> KeyTable:
        """The table after documents left slots and came into slots."""
        other = object.__new__(KeyTable)
        left, slots = _pairs(gone)
        starts, ends = np.searchsorted(self._keys, left, "left"), np.searchsorted(self._keys, left, "right")
        places = [
            start + int(np.flatnonzero(self._slots[start:end] == slot)[0])
            for start, end, slot in zip(starts.tolist(), ends.tolist(), slots.tolist(), strict=True)
        ]
        keys, kept = np.delete(self._keys, places), np.delete(self._slots, places)
        came, slots = _pairs(new)
        order = np.argsort(came, kind="stable")
        at = np.searchsorted(keys, came[order])
        other._keys, other._slots = np.insert(keys, at, came[order]), np.insert(kept, at, slots[order])
        return other


def _pairs(rows: Rows) -> tuple[Keys, Numbers]:
    found = [(hash(key), slot) for slot, keys in rows for key in keys]
    pairs = np.array(found, np.int64).reshape(len(found), 2)
    return pairs[:, 0].copy(), pairs[:, 1].astype(np.int32)
