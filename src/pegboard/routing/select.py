"""Selects tools from scores: pure functions over arrays in catalog order, shape (n,)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from pegboard.model import Floats, Mask, Scores
from pegboard.retrieval.mentions import NOTHING, Mentioned
from pegboard.routing.profiles import Profile

Indices = NDArray[np.intp]
MOST_OF_ONE = 4
"""Maximum tools of one named object before the first tool of another named object."""
FAINT = 0.05
"""Share of the best score below which a named object or server counts as a coincidence."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Selection:
    """Places in the catalog: the tools that could be chosen, best first, and those that were."""

    order: Indices
    chosen: Indices
    meets_target: bool


def everything(eligible: Mask) -> Selection:
    """The selection if relevance is unknown: every eligible tool."""
    places = np.flatnonzero(eligible)
    return Selection(order=places, chosen=places, meets_target=True)


def choose(
    scores: Scores,
    eligible: Mask,
    *,
    pinned: Mask,
    tokens: Sequence[int],
    profile: Profile,
    mentioned: Mentioned = NOTHING,
) -> Selection:
    """Pinned tools, then the best gated ones, as many as the recall target, k and budget allow. Each object that the
    request names gets a tool before another named object gets its fifth."""
    always = np.flatnonzero(pinned & eligible)
    order = best_first(scores.values, gate(scores.values, eligible & ~pinned, profile.threshold))
    wanted = distinct_first(likely_enough(scores, order, profile.recall), scores.jobs)
    near = order[scores.values[order] >= FAINT * scores.values[order].max(initial=0)]
    picked = with_named(top_k(wanted, profile.k), near, mentioned, profile.k)
    chosen = under_budget(np.concatenate([always, picked]), tokens, profile.budget)
    return Selection(
        order=np.concatenate([always, order]),
        chosen=chosen,
        meets_target=profile.recall is None or set(wanted.tolist()) <= set(chosen.tolist()),
    )


def gate(scores: Floats, eligible: Mask, threshold: float | None) -> Mask:
    """g(t_i; q, state) = 1[ISO ≥ θ] · 1[state ⊨ pre_i] (Tool Attention eq. 6)."""
    return eligible if threshold is None else eligible & (scores >= np.float32(threshold))


def best_first(scores: Floats, among: Mask) -> Indices:
    """Places of the tools in ``among``, best score first, ties in catalog order."""
    places = np.flatnonzero(among)
    return np.asarray(places[np.argsort(-scores[places], kind="stable")])


def top_k(order: Indices, k: int | None) -> Indices:
    """A_t = top-k of the gated tools (Tool Attention eq. 7)."""
    return order if k is None else order[:k]


def likely_enough(scores: Scores, order: Indices, recall: float | None) -> Indices:
    """The start of ``order`` whose tools each have at least the share of the expected relevance that ``recall``
    requires.

    One threshold for all queries reaches a mean recall with fewer tools than filling each query up to the same mass,
    which would take hundreds for an unclear query. The best tool is always included.
    """
    if recall is None or not len(order):
        return order
    values = scores.values[order]
    bar = scores.share_for(recall) * (float(values.sum(dtype=np.float64)) + scores.unscored)
    return order[: max(1, int(np.count_nonzero(values >= bar - 1e-9)))]


def distinct_first(order: Indices, jobs: Indices | None) -> Indices:
    """The best tool of each job first, then further tools for the same job."""
    if jobs is None:
        return order
    _, first = np.unique(jobs[order], return_index=True)
    is_first = np.zeros(len(order), np.bool_)
    is_first[first] = True
    return np.concatenate([order[is_first], order[~is_first]])


def with_named(picked: Indices, order: Indices, mentioned: Mentioned, k: int | None) -> Indices:
    """The picked tools, plus the tools that the request names and the best tool of each object and server it names.

    The added tools take free places first, then those of tools beyond `MOST_OF_ONE` of another object, least likely
    first.
    """
    if not mentioned:
        return picked
    rank = {place: number for number, place in enumerate(order.tolist())}
    named = sorted(mentioned.tools & rank.keys(), key=rank.__getitem__)
    kept = list(dict.fromkeys([*named, *picked.tolist()]))[:k]
    left_out = (group & rank.keys() for group in mentioned.groups if group.isdisjoint(kept))
    missing = sorted({min(group, key=rank.__getitem__) for group in left_out if group}, key=rank.__getitem__)
    room = len(missing) if k is None else k - len(kept)
    going = crowding(kept, mentioned)[: max(0, len(missing) - room)]
    coming = missing[: room + len(going)]
    return np.array([*coming, *(place for place in kept if place not in going)], np.intp)


def crowding(kept: Sequence[int], mentioned: Mentioned) -> list[int]:
    """The kept tools beyond `MOST_OF_ONE` of a named object, the last first; ``kept`` is best first."""
    found: list[int] = []
    for group in mentioned.objects:
        found += [place for place in kept if place in group][MOST_OF_ONE:]
    return sorted(set(found) - mentioned.tools, key=kept.index, reverse=True)


def under_budget(order: Indices, tokens: Sequence[int], budget: int | None) -> Indices:
    """The tools of ``order`` that fit into the budget, best first; a tool that is too large is skipped."""
    if budget is None:
        return order
    kept, left = [], budget
    for place in order:
        if tokens[place] <= left:
            kept.append(place)
            left -= tokens[place]
    return np.array(kept, np.intp)
