from __future__ import annotations

import numpy as np

from pegboard import ToolId
from pegboard_bench.index.vectors import Vectors, synthesised


def models(count: int) -> Vectors:
    rows = np.random.default_rng(0).normal(size=(count, 64)).astype(np.float32)
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    return Vectors(ids=[ToolId("server", f"tool {number}") for number in range(count)], rows=rows, queries=rows[:2])


def test_synthesised_vectors_begin_with_the_real_ones_and_lie_around_them() -> None:
    made = synthesised(models(20), 205, seed=1)

    assert made.rows.shape == (205, 64)
    assert len(set(made.ids)) == 205
    np.testing.assert_array_equal(made.rows[:20], models(20).rows)
    np.testing.assert_allclose(np.linalg.norm(made.rows, axis=1), 1, atol=1e-5)
    cosines = [float(made.rows[20 + number] @ made.rows[number % 20]) for number in range(185)]
    assert 0.7 < np.mean(cosines) < 0.86


def test_the_same_seed_synthesises_the_same_vectors() -> None:
    one, other = (synthesised(models(5), 30, seed=7).rows for _ in range(2))

    np.testing.assert_array_equal(one, other)
