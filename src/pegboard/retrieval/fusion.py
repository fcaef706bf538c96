"""Fuses several scores into one: the probability that the query needs a tool.

    parts ─► z-scores (except `SHARED`) ─► weighted sum ─► share of the relevance (softmax) ─► probability (logistic)

The fitted parameters are in `fusion.json`, written by `scripts/fit_fusion.py` with a record of the data.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import asdict, astuple, dataclass, replace
from functools import lru_cache
from importlib.resources import files
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pegboard.model import Floats, Mask, Scale, Scores

ROUNDING = 1e-6
"""A deviation below this share of the mean counts as float32 noise."""
SHARED = frozenset({"name", "named"})
"""Parts on the same scale in every query, from 0 to 1; they are not standardized."""
LEAST = 1e-9
"""Shares are kept this far from 0 and 1, so that their log-odds are finite."""


@dataclass(frozen=True, slots=True)
class Calibration:
    """P(relevant) = σ(intercept + share·logit(s) + best·ln(s_max) + clauses·ln(number of clauses)).

    s is the tool's share of the relevance and s_max the largest one: if the best tool stands out, the query was more
    likely understood. A message of several clauses needs several tools. (Platt 1999, with two more features.)
    """

    intercept: float
    share: float
    best: float
    clauses: float

    def __call__(self, shares: Floats, clauses: int) -> Floats:
        log_odds = features(shares, clauses) @ np.array(astuple(self))
        return np.asarray(1 / (1 + np.exp(-log_odds)), np.float32)


SHARES = Calibration(intercept=0, share=1, best=0, clauses=0)
"""The shares unchanged: an order, not probabilities."""


def features(shares: Floats, clauses: int) -> NDArray[np.float64]:
    """The features of a calibration, shape (n, 4), in the order of its fields."""
    of_query = [math.log(max(LEAST, float(shares.max()))), math.log(clauses)]
    columns = np.empty((len(shares), 2 + len(of_query)))
    columns[:, 0], columns[:, 1], columns[:, 2:] = 1, logit(shares), of_query
    return columns


@dataclass(frozen=True, slots=True, kw_only=True)
class UnscoredTools:
    """The tools that are not scored for a query because an index left them out.

    ``spread`` has values of each part whose mean and deviation are those over all tools. ``parts``, shape (s,), are
    those of a sample of the unscored tools, each of which represents ``each`` tools; ``eligible``, shape (s,), marks
    those that could have been chosen.
    """

    spread: Mapping[str, Floats]
    parts: Mapping[str, Floats]
    each: float
    eligible: Mask


@dataclass(frozen=True, slots=True, kw_only=True)
class Fusion:
    """The weights of the parts, the calibration of shares to probabilities, and the shares needed for recall targets.

    ``least_share`` maps a recall to the share of the expected relevance that a tool needs, so that the recall is
    reached on average over labelled queries.
    """

    weights: Mapping[str, float]
    calibration: Calibration
    least_share: Mapping[float, float]
    scale: Scale = "probability"

    def fuse(
        self,
        parts: Mapping[str, Floats],
        *,
        clauses: int = 1,
        query_vector: Floats | None = None,
        others: UnscoredTools | None = None,
    ) -> Scores:
        """A probability per tool, or points without a calibration; shape (n,), like each part.

        ``others`` take their share of the relevance too.
        """
        if others is None:
            values, unscored = self.calibration(softmax(evidence(self.weights, parts)), clauses), 0.0
        else:
            values, unscored = self._estimated(parts, others, clauses)
        return Scores(
            values=values,
            unscored=unscored,
            scale=self.scale,
            parts=dict(parts),
            query_vector=query_vector,
            least_share=self.least_share,
        )

    def uncalibrated(self) -> Fusion:
        """The fusion without its calibration, for vectors of an encoder that it was not fitted for: only the order."""
        return replace(self, calibration=SHARES, least_share={}, scale="points")

    def _estimated(self, parts: Mapping[str, Floats], others: UnscoredTools, clauses: int) -> tuple[Floats, float]:
        """Probabilities as if the others had been scored too, and the sum of theirs."""
        scored = evidence(self.weights, parts, others.spread)
        sample = evidence(self.weights, others.parts, others.spread)
        counts = np.repeat(np.array([1, others.each], np.float32), [len(scored), len(sample)])
        values = self.calibration(softmax(np.concatenate([scored, sample]), counts), clauses)
        left_out = values[len(scored) :][others.eligible]
        return values[: len(scored)], others.each * float(left_out.sum(dtype=np.float64))

    @classmethod
    def of(cls, fitted: Mapping[str, Any]) -> Fusion:
        """From an entry of `fusion.json`."""
        least = {float(recall): float(share) for recall, share in fitted["least_share"].items()}
        return cls(weights=dict(fitted["weights"]), calibration=Calibration(**fitted["calibration"]), least_share=least)

    def written(self) -> dict[str, Any]:
        """As an entry of `fusion.json`."""
        return {
            "weights": {name: round(weight, 4) for name, weight in self.weights.items()},
            "calibration": {name: round(value, 4) for name, value in asdict(self.calibration).items()},
            "least_share": {str(recall): float(f"{share:.4g}") for recall, share in self.least_share.items()},
        }


@lru_cache(maxsize=1)
def shipped() -> Mapping[str, Fusion]:
    """`hybrid` for all parts; `words` for use without vectors."""
    fitted = json.loads((files("pegboard.retrieval") / "fusion.json").read_text("utf-8"))
    return {name: Fusion.of(fitted[name]) for name in ("hybrid", "words")}


def evidence(
    weights: Mapping[str, float], parts: Mapping[str, Floats], spread: Mapping[str, Floats] | None = None
) -> Floats:
    """Σ_p w_p · z(part p) over the given parts, shape (n,); parts without a weight are ignored."""
    weighted = [
        np.float32(weights[name]) * comparable(name, values, None if spread is None else spread[name])
        for name, values in parts.items()
        if name in weights
    ]
    return np.asarray(np.sum(weighted, axis=0), np.float32) if weighted else _nothing(parts)


def comparable(name: str, values: Floats, over: Floats | None = None) -> Floats:
    """A part as it is weighted: its z-scores, or unchanged if it is in `SHARED`."""
    return values if name in SHARED else z_score(values, over)


def _nothing(parts: Mapping[str, Floats]) -> Floats:
    return np.zeros(len(next(iter(parts.values()))), np.float32)


def z_score(values: Floats, over: Floats | None = None) -> Floats:
    """Distance from the mean in standard deviations, over the tools of one query; zeros if all are equal.

    If ``over`` is given, mean and deviation are taken from it.
    """
    whole = values if over is None else over
    mean = whole.mean(dtype=np.float64)
    centred = whole - mean
    deviation = math.sqrt(float(np.square(centred).mean()))  # a product would wake the threads of BLAS
    if deviation <= abs(mean) * ROUNDING:
        return np.zeros_like(values)
    return np.asarray((centred if over is None else values - mean) / deviation, np.float32)


def softmax(values: Floats, counts: Floats | None = None) -> Floats:
    """Shares of 1, proportional to e to the values; ``counts`` is the number of tools that each value represents."""
    powers = np.exp(values - values.max())
    whole = powers.sum() if counts is None else powers @ counts
    return np.asarray(powers / whole, np.float32)


def logit(shares: Floats) -> NDArray[np.float64]:
    """The log-odds of shares of 1."""
    inside = np.clip(shares.astype(np.float64), LEAST, 1 - LEAST)
    return np.asarray(np.log(inside) - np.log1p(-inside))
