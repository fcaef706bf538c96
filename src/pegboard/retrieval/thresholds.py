"""What a threshold on the cosines of `semantic` lets through with the encoder of the package, as it was measured.

It stands in `thresholds.json`; `scripts/fit_threshold.py` measures it and writes down on what.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

FEW = 0.5
"""Of the recall at the best θ: what lets less through is most likely another encoder's threshold."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Curve:
    """``recall`` is the mean share of the needed tools at or above each θ, ascending; ``best`` the θ of the best F1."""

    encoder: str
    best: float
    recall: Mapping[float, float]

    def recall_at(self, threshold: float) -> float:
        """At the nearest θ that was measured at or below ``threshold``; above all of them at the last."""
        below = [theta for theta in self.recall if theta <= threshold + 1e-9]
        return self.recall[max(below, default=min(self.recall))]

    def too_high(self, threshold: float) -> str:
        """What is to be said of a threshold that lets next to nothing through; else nothing.

        >>> measured().too_high(0.7)
        'A threshold of 0.7 lets 9% of the needed tools through with the encoder of the package. 0.44 lets 65% through.'
        >>> measured().too_high(0.4)
        ''
        """
        found, best = self.recall_at(threshold), self.recall_at(self.best)
        if found >= FEW * best:
            return ""
        return (
            f"A threshold of {threshold:g} lets {found:.0%} of the needed tools through with the encoder of the "
            f"package. {self.best:g} lets {best:.0%} through."
        )


@cache
def measured() -> Curve:
    said = json.loads((files("pegboard.retrieval") / "thresholds.json").read_text("utf-8"))
    recall = {float(theta): float(point["recall"]) for theta, point in said["curve"].items()}
    return Curve(encoder=said["encoder"], best=said["best"], recall=dict(sorted(recall.items())))
