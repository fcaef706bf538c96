"""What is reported of a policy, made of the measures of its episodes."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from pegboard_bench.simulate.run import MEASURES
from pegboard_bench.simulate.spread import Resampled
from pegboard_bench.simulate.world import Numbers

METRICS: Mapping[str, tuple[tuple[str, ...], str]] = {
    "success": (("success",), ""),
    "reached": (("reached",), ""),
    "invalid_calls": (("invalid_routes", "invalid_calls"), ""),
    "invalid_routes": (("invalid_routes",), ""),
    "tokens": (("tokens",), ""),
    "cost_usd": (("cost_usd",), ""),
    "seconds_to_success": (("seconds",), "success"),
    "utility": (("utility",), "calls"),
    "mrr": (("mrr",), ""),
    "recall@3": (("recall@3",), ""),
}
"""Each is a sum of measures over the sum of another, or over the tasks. ``invalid_calls`` is the paper's C-Inv."""
TOTALS = ("invalid_calls", "invalid_routes", "tokens", "cost_usd")
"""Of all tasks together, as in the paper's tables; the others are means of a task or of a call."""


def scale(metric: str, tasks: int) -> float:
    return float(tasks) if metric in TOTALS else 1.0


def values(played: Numbers, metric: str, resampled: Resampled) -> Numbers:
    """A metric of a policy, as it is and resampled; ``played`` has the shape (worlds, tasks, measures)."""
    measures, of = METRICS[metric]
    above = sum((played[..., MEASURES.index(measure)] for measure in measures), np.zeros(played.shape[:2]))
    below = played[..., MEASURES.index(of)] if of else np.ones(played.shape[:2])
    if of == "success":
        above = above * below
    return resampled.ratios(above, below)
