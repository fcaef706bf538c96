"""Several scores into one: the probability that, of all tools, this is the one that the query is about."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from functools import lru_cache
from importlib.resources import files

import numpy as np

from pegboard.model import Floats, Scores

ROUNDING = 1e-6
"""A deviation below this share of the mean is float32 noise."""


@lru_cache(maxsize=1)
def weights() -> Mapping[str, float]:
    """What each part counts. `scripts/fit_hybrid.py` fits them and writes down on what."""
    return dict(json.loads((files("pegboard.retrieval") / "fusion.json").read_text("utf-8"))["weights"])


def z_score(values: Floats) -> Floats:
    """Distance from the mean in standard deviations, over the tools of one query; zeros where all are equal."""
    mean = values.mean(dtype=np.float64)
    centred = values - mean
    deviation = math.sqrt(float(centred @ centred) / len(values))
    if deviation <= abs(mean) * ROUNDING:
        return np.zeros_like(values)
    return np.asarray(centred / deviation, np.float32)


def softmax(values: Floats) -> Floats:
    """Shares of 1, in the ratio of e to the values."""
    powers = np.exp(values - values.max())
    return np.asarray(powers / powers.sum(), np.float32)


def fuse(parts: Mapping[str, Floats], query_vector: Floats | None = None) -> Scores:
    """softmax(Σ_p w_p · z(part p)), shape (n,): a share of the relevance that adapts to how many tools there are."""
    weighted = [np.float32(weights()[name]) * z_score(values) for name, values in parts.items()]
    values = softmax(np.sum(weighted, axis=0))
    return Scores(values=values, scale="probability", parts=dict(parts), query_vector=query_vector)
