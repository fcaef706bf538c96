"""Vectors that grow at their end: snapshots share memory, and none sees what others added."""

from __future__ import annotations

import random

import numpy as np
import pytest

from pegboard.model import Floats
from pegboard.retrieval.index.growing_rows import GrowingRows

D = 4


def drawn(chance: random.Random, rows: int) -> Floats:
    return np.array([[chance.random() for _ in range(D)] for _ in range(rows)], np.float32).reshape(rows, D)


@pytest.mark.requirement("library.changed-tools")
@pytest.mark.parametrize("seed", range(5))
def test_each_snapshot_keeps_its_rows_whatever_others_add(seed: int) -> None:
    chance = random.Random(seed)
    start = drawn(chance, 20)
    snapshots = [(GrowingRows(start), start.copy())]
    for _ in range(60):
        known, expected = chance.choice(snapshots[-4:])
        more = drawn(chance, chance.randint(0, 3))
        snapshots.append((known.extended(more), np.concatenate([expected, more])))

    for known, expected in snapshots:
        assert np.array_equal(known.rows, expected)


def test_a_row_more_copies_nothing_while_there_is_room() -> None:
    first = GrowingRows(np.zeros((64, D), np.float32)).extended(np.ones((1, D), np.float32))
    second = first.extended(np.ones((1, D), np.float32))

    assert np.shares_memory(first.rows, second.rows)
    assert not np.shares_memory(first.extended(np.zeros((1, D), np.float32)).rows, second.rows)
