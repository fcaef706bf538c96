"""The measured recall of thresholds on the cosines of `semantic`, with the bundled encoder.

It is in `thresholds.json`, written by `scripts/fit_threshold.py` with a record of the data.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

FEW = 0.5
"""Share of the recall at the best θ below which a threshold is most likely meant for another encoder."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Curve:
    """``recall`` is the mean share of needed tools at or above each θ, ascending; ``best`` is the θ of the best F1."""

    encoder: str
    best: float
    recall: Mapping[float, float]

    def recall_at(self, threshold: float) -> float:
        """The recall at the nearest measured θ at or below ``threshold``."""
        below = [theta for theta in self.recall if theta <= threshold + 1e-9]
        return self.recall[max(below, default=min(self.recall))]

    def too_high(self, threshold: float) -> str:
        """A warning for a threshold that lets almost nothing through; otherwise empty.

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
