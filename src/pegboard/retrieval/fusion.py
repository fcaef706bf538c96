"""Several scores into one."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from pegboard.model import Floats, Scores

WEIGHTS: Mapping[str, float] = {"cosine": 1.0, "bm25": 0.5, "server": 0.15}


def z_score(values: Floats) -> Floats:
    """Distance from the mean in standard deviations, over the tools of one query; zeros where all are equal."""
    deviation = float(values.std())
    if deviation < 1e-9:
        return np.zeros_like(values)
    return np.asarray((values - values.mean()) / deviation, np.float32)


def fuse(parts: Mapping[str, Floats], query_vector: Floats | None = None) -> Scores:
    """Weighted sum of z-scores, and its probability."""
    total = sum((WEIGHTS[name] * z_score(values) for name, values in parts.items()), np.float32(0))
    values = np.asarray(1 / (1 + np.exp(4.0 - np.asarray(total))), np.float32)
    return Scores(values=values, scale="probability", parts=dict(parts), query_vector=query_vector)
