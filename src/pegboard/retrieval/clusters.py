"""Clusters of vectors: deterministic spherical k-means."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from pegboard.model import Floats

MEMBERS = 8
"""Target number of vectors per cluster."""
MOST_CLUSTERS = 19
LEAST_MEMBERS = 3
ROUNDS = 50

Assignment = NDArray[np.intp]


def cluster(vectors: Floats, k: int | None = None) -> Assignment:
    """The cluster of each vector, shape (n,), for vectors of shape (n, d): numbered from 0, without empty clusters.

    Spherical k-means (Dhillon and Modha 2001) on the vectors minus their mean. The initial clusters come from halving
    the most scattered one along its main axis (bisecting k-means, Steinbach et al. 2000). Without ``k``, n determines
    it; clusters of fewer than three vectors are dissolved.
    """
    count = k or min(MOST_CLUSTERS, max(1, round(len(vectors) / MEMBERS)))
    points = _unit(vectors - vectors.mean(axis=0)) if len(vectors) else vectors
    assigned = _refined(points, _halved(points, count))
    while len(sizes := np.bincount(assigned)) > 1 and sizes.min() < LEAST_MEMBERS:
        centres = np.delete(_centres(points, assigned), int(np.argmin(sizes)), axis=0)
        assigned = _refined(points, _nearest(points, centres))
    return assigned


def _halved(points: Floats, k: int) -> Assignment:
    """At most k clusters: the most scattered one is halved next."""
    assigned = np.zeros(len(points), np.intp)
    while (found := int(assigned.max(initial=-1)) + 1) < min(k, len(points)):
        members = np.flatnonzero(assigned == np.argmax(_scatter(points, assigned)))
        of_members = points[members] if found > 1 else points
        half = _refined(of_members, _sides(of_members))
        if half.max() == 0:
            break
        assigned[members[half == 1]] = found
    return assigned


def _scatter(points: Floats, assigned: Assignment) -> Floats:
    """Of each cluster, the sum of 1 − cosine between its members and its centre."""
    near = (points @ _centres(points, assigned).T)[np.arange(len(points)), assigned]
    return np.bincount(assigned, weights=1 - near).astype(points.dtype)


def _sides(points: Floats) -> Assignment:
    """On which side of their mean the points lie, along their first principal axis."""
    mean = points.mean(axis=0)
    axis = _main_axis(points, mean)
    return np.asarray(points @ axis > mean @ axis).astype(np.intp)


def _main_axis(points: Floats, mean: Floats) -> Floats:
    """The first principal axis, shape (d,), of points; its sign is arbitrary. No copy of many points is made."""
    if len(points) > len(mean):
        scatter = points.T @ points - len(points) * np.outer(mean, mean)
        return np.asarray(np.linalg.eigh(scatter)[1][:, -1])
    return np.asarray(np.linalg.svd(points - mean, full_matrices=False)[2][0])


def _refined(points: Floats, assigned: Assignment) -> Assignment:
    """Assign every point to the nearest centre until none moves; clusters are numbered by their first point."""
    for _ in range(ROUNDS):
        moved = _numbered(_nearest(points, _centres(points, assigned)))
        if np.array_equal(moved, assigned):
            break
        assigned = moved
    return _numbered(assigned)


def _numbered(assigned: Assignment) -> Assignment:
    _, first, numbers = np.unique(assigned, return_index=True, return_inverse=True)
    return np.asarray(np.argsort(np.argsort(first))[numbers.reshape(len(assigned))])


def _nearest(points: Floats, centres: Floats) -> Assignment:
    return np.asarray(np.argmax(points @ centres.T, axis=1)) if len(points) else np.zeros(0, np.intp)


def _centres(points: Floats, assigned: Assignment) -> Floats:
    sums = np.zeros((int(assigned.max(initial=-1)) + 1, points.shape[1]), points.dtype)
    np.add.at(sums, assigned, points)
    return _unit(sums)


def _unit(rows: Floats) -> Floats:
    """These rows, scaled in place to length 1; zero rows stay."""
    lengths = np.sqrt(np.einsum("nd,nd->n", rows, rows))
    rows /= np.where(lengths > 0, lengths, 1)[:, None]
    return rows
