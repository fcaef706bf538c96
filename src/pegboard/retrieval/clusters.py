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
        half = _refined(points[members], _sides(points[members]))
        if half.max() == 0:
            break
        assigned[members[half == 1]] = found
    return assigned


def _scatter(points: Floats, assigned: Assignment) -> Floats:
    """Of each cluster, the sum of 1 − cosine between its members and its centre."""
    lost = 1 - np.einsum("nd,nd->n", points, _centres(points, assigned)[assigned])
    return np.bincount(assigned, weights=lost).astype(points.dtype)


def _sides(points: Floats) -> Assignment:
    """On which side of their mean the points lie, along their first principal axis."""
    centred = points - points.mean(axis=0)
    return np.asarray(centred @ _main_axis(centred) > 0).astype(np.intp)


def _main_axis(centred: Floats) -> Floats:
    """The first principal axis, shape (d,), of points with mean 0; its sign is arbitrary."""
    if len(centred) > centred.shape[1]:  # a d × d matrix in memory, not factors of all points
        return np.asarray(np.linalg.eigh(centred.T @ centred)[1][:, -1])
    return np.asarray(np.linalg.svd(centred, full_matrices=False)[2][0])


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
    """Rows scaled to length 1; zero rows stay."""
    lengths = np.linalg.norm(rows, axis=1, keepdims=True)
    return np.asarray(rows / np.where(lengths > 0, lengths, 1), rows.dtype)
