"""From scores to the few: pure functions over arrays in catalog order, shape (n,)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from pegboard.model import Floats, Mask
from pegboard.routing.profiles import Profile

Indices = NDArray[np.intp]


@dataclass(frozen=True, slots=True, kw_only=True)
class Selection:
    """Places in the catalog: all that could be chosen, best first, and what was."""

    order: Indices
    chosen: Indices
    meets_target: bool


def everything(eligible: Mask) -> Selection:
    """What is chosen where nothing can be said about relevance."""
    places = np.flatnonzero(eligible)
    return Selection(order=places, chosen=places, meets_target=True)


def choose(scores: Floats, eligible: Mask, *, pinned: Mask, tokens: Sequence[int], profile: Profile) -> Selection:
    """Pinned tools first, then the best of the gated ones, as many as recall target, k and budget let through."""
    always = np.flatnonzero(pinned & eligible)
    order = best_first(scores, gate(scores, eligible & ~pinned, profile.threshold))
    wanted = top_k(enough_mass(scores, order, profile.recall), profile.k)
    chosen = under_budget(np.concatenate([always, wanted]), tokens, profile.budget)
    ranked = chosen[~pinned[chosen]]
    met = profile.recall is None or mass_reached(scores, ranked, order) >= profile.recall - 1e-6
    return Selection(order=np.concatenate([always, order]), chosen=chosen, meets_target=met)


def gate(scores: Floats, eligible: Mask, threshold: float | None) -> Mask:
    """g(t_i; q, state) = 1[ISO ≥ θ] · 1[state ⊨ pre_i] (seed 000 eq. 6)."""
    return eligible if threshold is None else eligible & (scores >= np.float32(threshold))


def best_first(scores: Floats, among: Mask) -> Indices:
    """Places of the tools in ``among``, best score first; equal scores stay in catalog order."""
    places = np.flatnonzero(among)
    return np.asarray(places[np.argsort(-scores[places], kind="stable")])


def top_k(order: Indices, k: int | None) -> Indices:
    """A_t = top-k of the gated tools (seed 000 eq. 7)."""
    return order if k is None else order[:k]


def enough_mass(probabilities: Floats, order: Indices, recall: float | None) -> Indices:
    """The shortest start of ``order`` that holds the share ``recall`` of all relevance expected in ``order``.

    ``probabilities`` are shares of the relevance; those of tools outside ``order`` do not count.
    """
    if recall is None or not len(order):
        return order
    mass = np.cumsum(probabilities[order], dtype=np.float64)
    return order[: int(np.searchsorted(mass, recall * mass[-1] - 1e-9)) + 1]


def under_budget(order: Indices, tokens: Sequence[int], budget: int | None) -> Indices:
    """The tools of ``order`` that fit, best first; one that is too large is passed over for those behind it."""
    if budget is None:
        return order
    kept, left = [], budget
    for place in order:
        if tokens[place] <= left:
            kept.append(place)
            left -= tokens[place]
    return np.array(kept, np.intp)


def mass_reached(probabilities: Floats, chosen: Indices, among: Indices) -> float:
    """The share of the relevance expected in ``among`` that ``chosen`` holds."""
    total = float(probabilities[among].sum(dtype=np.float64))
    return float(probabilities[chosen].sum(dtype=np.float64)) / total if total > 0 else 1.0
