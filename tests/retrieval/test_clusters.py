from __future__ import annotations

from random import Random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import adjusted_rand_score

from pegboard.model import Floats
from pegboard.retrieval.clusters import MOST_CLUSTERS, cluster


def blobs(count: int, each: int, seed: int = 0, spread: float = 0.1) -> tuple[Floats, np.ndarray]:
    """Unit vectors around as many random directions, and which they belong to."""
    generator = np.random.default_rng(seed)
    centres = generator.normal(size=(count, 16))
    centres /= np.linalg.norm(centres, axis=1, keepdims=True)
    truth = np.repeat(np.arange(count), each)
    points = centres[truth] + spread * generator.normal(size=(count * each, 16))
    return (points / np.linalg.norm(points, axis=1, keepdims=True)).astype(np.float32), truth


@pytest.mark.parametrize("seed", range(5))
def test_what_lies_together_is_one_cluster(seed: int) -> None:
    points, truth = blobs(4, 9, seed)

    assert adjusted_rand_score(truth, cluster(points, 4)) == 1.0


def test_what_all_vectors_share_does_not_hide_how_they_differ() -> None:
    points, truth = blobs(3, 10)
    shifted = points + 20 * np.ones(16, np.float32)

    found = cluster((shifted / np.linalg.norm(shifted, axis=1, keepdims=True)).astype(np.float32), 3)

    assert adjusted_rand_score(truth, found) == 1.0


def test_small_clusters_are_dissolved() -> None:
    points, _ = blobs(2, 10)
    outlier = -points.mean(axis=0, keepdims=True)

    sizes = np.bincount(cluster(np.concatenate([points, outlier]).astype(np.float32), 3))

    assert sizes.min() >= 3


vectors = st.tuples(st.integers(0, 60), st.integers(1, 4), st.integers(0, 50)).map(
    lambda given: np.random.default_rng(given[2]).integers(-1, 2, size=given[:2]).astype(np.float32)
)


@given(vectors)
def test_clusters_are_numbered_from_zero_and_few(points: Floats) -> None:
    assigned = cluster(points)

    assert assigned.shape == (len(points),)
    assert sorted(set(assigned)) == list(range(len(set(assigned))))
    assert len(set(assigned)) <= max(1, min(MOST_CLUSTERS, round(len(points) / 8)))


@given(vectors)
def test_clusters_are_the_same_every_time(points: Floats) -> None:
    assert np.array_equal(cluster(points), cluster(points))


@given(st.integers(0, 30))
def test_clusters_do_not_depend_on_the_order_of_the_vectors(seed: int) -> None:
    points, _ = blobs(3, 8, seed, spread=0.3)
    order = Random(seed).sample(range(len(points)), len(points))

    assert adjusted_rand_score(cluster(points)[order], cluster(points[order])) == 1.0


def test_equal_vectors_are_one_cluster() -> None:
    assert set(cluster(np.ones((30, 4), np.float32))) == {0}
