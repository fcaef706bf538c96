"""Fits a fusion to labelled queries: convex problems, solved by Newton's method.

weights       maximise the share of the relevance that falls on the relevant tools (listwise softmax, ListNet)
calibration   logistic regression of relevance on a tool's share, over the tools that could be chosen (Platt 1999)
least share   the threshold that reaches a recall on the examples (conformal risk control, Angelopoulos et al. 2024)
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import astuple, dataclass

import numpy as np
from numpy.typing import NDArray

from pegboard.model import Floats, Mask
from pegboard.retrieval.fusion import Calibration, Fusion, comparable, evidence, features, softmax

Doubles = NDArray[np.float64]
Slope = tuple[float, Doubles, Doubles]
"""Loss, gradient and curvature at some coefficients."""

DEPTH = 100
"""The number of best tools of each query that the calibration is fitted on: those that may be chosen."""
RIDGE = 1e-3
PRIOR = 20
"""The weight of an earlier fusion, in queries: this many contrary queries move it halfway."""
ROUNDS = 30
HALVINGS = 20
STILL = 1e-5
RECALLS = (0.5, 0.6, 0.7, 0.75, 0.8, 0.85, 0.9, 0.95)


@dataclass(frozen=True, slots=True, kw_only=True)
class Example:
    """A query: its parts, each of shape (n,), the tools it needs, and its number of clauses.

    ``goals`` are the places of the tools that reach each goal. ``weight`` is the weight of the query.
    """

    parts: Mapping[str, Floats]
    goals: Sequence[frozenset[int]]
    clauses: int
    weight: float = 1.0

    @property
    def relevant(self) -> Mask:
        mask = np.zeros(len(next(iter(self.parts.values()))), np.bool_)
        mask[list(frozenset().union(*self.goals))] = True
        return mask


def fit(
    examples: Sequence[Example],
    parts: Sequence[str],
    *,
    prior: Fusion | None = None,
    for_weights: Sequence[Example] = (),
) -> Fusion:
    """A fusion of these parts, close to the prior if there is one and the examples are few.

    ``for_weights`` are synthetic examples that only fit the weights, not the calibration, since their queries do not
    occur as often. Raises ValueError if no example has a relevant tool.
    """
    usable = [example for example in examples if any(example.goals)]
    if not usable:
        raise ValueError("No example has a relevant tool.")
    weights = fit_weights([*usable, *for_weights], parts, prior=prior)
    shares = [softmax(evidence(weights, {part: example.parts[part] for part in parts})) for example in usable]
    calibration = fit_calibration(usable, shares, prior=None if prior is None else prior.calibration)
    bars = fit_least_share(usable, shares, calibration)
    return Fusion(weights=weights, calibration=calibration, least_share=_between(bars, prior, len(usable)))


def fit_weights(examples: Sequence[Example], parts: Sequence[str], *, prior: Fusion | None = None) -> dict[str, float]:
    """Weights of the parts under which relevant tools have the largest share (Cao et al. 2007)."""
    stacked = [np.stack([comparable(part, example.parts[part]) for part in parts], axis=1) for example in examples]
    wanted = [stack[example.relevant].mean(axis=0) for stack, example in zip(stacked, examples, strict=True)]

    def slope(weights: Doubles) -> Slope:
        loss, gradient, curvature = 0.0, np.zeros(len(parts)), np.zeros((len(parts), len(parts)))
        for stack, want, example in zip(stacked, wanted, examples, strict=True):
            values = np.asarray(stack @ weights, np.float32)
            shares = softmax(values)
            mean = shares @ stack
            most = float(values.max())
            loss += example.weight * (most + math.log(float(np.exp(values - most).sum())) - float(want @ weights))
            gradient += example.weight * (mean - want)
            curvature += example.weight * ((stack * shares[:, None]).T @ stack - np.outer(mean, mean))
        return loss, gradient, curvature

    if prior is None:
        ridge, centre = RIDGE * sum(example.weight for example in examples), np.zeros(len(parts))
    else:
        ridge, centre = _weight_of_prior(examples), np.array([prior.weights.get(part, 0.0) for part in parts])
    return dict(zip(parts, _newton(slope, centre, ridge).tolist(), strict=True))


def fit_calibration(
    examples: Sequence[Example], shares: Sequence[Floats], *, prior: Calibration | None = None
) -> Calibration:
    """The logistic curve from shares to relevance, on the `DEPTH` best tools of each query."""
    rows, truth, counts = [], [], []
    for example, share in zip(examples, shares, strict=True):
        best = np.argsort(-share, kind="stable")[:DEPTH]
        rows.append(features(share, example.clauses)[best])
        truth.append(example.relevant[best])
        counts.append(np.full(len(best), example.weight))
    x, y, weight = np.concatenate(rows), np.concatenate(truth).astype(np.float64), np.concatenate(counts)

    def slope(coefficients: Doubles) -> Slope:
        odds = x @ coefficients
        chance = 1 / (1 + np.exp(-odds))
        loss = float(weight @ (np.logaddexp(0, odds) - y * odds))
        spread = weight * chance * (1 - chance)
        return loss, x.T @ (weight * (chance - y)), (x * spread[:, None]).T @ x

    ridge = RIDGE if prior is None else _weight_of_prior(examples)
    centre = np.zeros(x.shape[1]) if prior is None else np.array(astuple(prior))
    return Calibration(*_newton(slope, centre, ridge).tolist())


def fit_least_share(
    examples: Sequence[Example], shares: Sequence[Floats], calibration: Calibration
) -> dict[float, float]:
    """For each recall, the least share of a query's expected relevance that a tool needs for the recall to be reached.

    The recall is the mean over the examples; one threshold for all queries reaches it with the fewest tools. The best
    tool of a query is always taken.
    """
    reached: list[tuple[float, float]] = []
    for example, share in zip(examples, shares, strict=True):
        expected = calibration(share, example.clauses)
        of_query = expected / expected.sum()
        of_query[int(expected.argmax())] = 1.0
        best = (max(float(of_query[tool]) for tool in goal) for goal in example.goals if goal)
        reached += [(of_goal, example.weight / len(example.goals)) for of_goal in best]
    bars, gains = np.array(sorted(reached, reverse=True)).T
    recall = np.cumsum(gains) / sum(example.weight for example in examples)
    return {asked: _at(bars, recall, asked) for asked in RECALLS}


def _at(bars: Doubles, recall: Doubles, asked: float) -> float:
    """The threshold that reaches the recall; 0 if it is never reached."""
    place = int(np.searchsorted(recall, asked))
    return float(bars[place]) if place < len(bars) else 0.0


def _weight_of_prior(examples: Sequence[Example]) -> float:
    """The weight of `PRIOR` queries."""
    return PRIOR * sum(example.weight for example in examples) / len(examples)


def _between(bars: Mapping[float, float], prior: Fusion | None, count: int) -> Mapping[float, float]:
    """The weighted mean of the least shares of ``count`` examples and of the prior."""
    if prior is None:
        return bars
    pairs = ((asked, fitted, prior.least_share.get(asked, fitted)) for asked, fitted in bars.items())
    return {asked: (count * fitted + PRIOR * before) / (count + PRIOR) for asked, fitted, before in pairs}


def _newton(slope: Callable[[Doubles], Slope], centre: Doubles, ridge: float) -> Doubles:
    """The coefficients that minimize the loss plus ridge·‖c − centre‖²/2.

    A step that increases it is halved until it does not.
    """
    coefficients = centre
    loss, gradient, curvature = slope(coefficients)
    for _ in range(ROUNDS):
        change = np.linalg.solve(curvature + ridge * np.eye(len(centre)), gradient + ridge * (coefficients - centre))
        for _ in range(HALVINGS):
            tried = coefficients - change
            there, *rest = slope(tried)
            if there + _penalty(tried - centre, ridge) <= loss + _penalty(coefficients - centre, ridge):
                break
            change /= 2
        coefficients, loss, (gradient, curvature) = tried, there, rest
        if np.abs(change).max() < STILL:
            break
    return coefficients


def _penalty(away: Doubles, ridge: float) -> float:
    return ridge * float(away @ away) / 2
