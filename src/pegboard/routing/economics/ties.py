"""Price and failure under profiles that go by relevance: between tools of one job that are nearly as relevant."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from pegboard.catalog import Catalog
from pegboard.model import Mask, Scores, Turn
from pegboard.routing.economics.books import Books, Economics
from pegboard.routing.economics.equations import Array, Places, chance, overhead, tool_cost

CHEAPER = 2.0
"""So many times less a tool has to cost to take the place of another: live latency alone does not turn a selection."""


class NearTies:
    """Of tools that do the same job on different servers, and whose probabilities are within a share of the best one's,
    the one that costs far less (C^t, EHRR eq. 6) changes places with the best (DESIGN §2).

    Relevance stays as it is in sum, and in every other place.
    """

    def __init__(self, catalog: Catalog, economics: Economics) -> None:
        self._economics = economics
        self._books = Books(catalog, economics)

    async def worth(self, scores: Scores, allowed: Mask, turn: Turn) -> tuple[Scores, Mask]:
        """The scores with some of them exchanged, and ``allowed`` as it is."""
        jobs = _of_one_job(scores, allowed)
        if not jobs:
            return scores, allowed
        await self._economics.knowledge.refresh()
        values = scores.values.copy()
        cost, share = self._costs(), 1 - self._economics.near_ties
        for members in jobs:
            best = members[np.argmax(values[members])]
            near = members[values[members] >= share * values[best]]
            cheapest = near[np.argmin(cost[near])]
            if cost[cheapest] * CHEAPER <= cost[best]:
                values[[best, cheapest]] = values[[cheapest, best]]
        return replace(scores, values=values), allowed

    def _costs(self) -> Array:
        """C^t_ij of every tool, seconds, shape (n,)."""
        books, parameters = self._books, self._economics.parameters
        servers, tools = books.estimates()
        return tool_cost(
            overhead(parameters.route_overhead, books.connections()[books.server_of]),
            tools.latency,
            chance(servers.failure[books.server_of], tools.success, floor=parameters.floor),
            books.prices,
            seconds_per_usd=parameters.seconds_per_usd,
            per_attempt=parameters.per_attempt,
        )


def _of_one_job(scores: Scores, allowed: Mask) -> list[Places]:
    """The places of the allowed tools of each job that more than one of them does."""
    if scores.jobs is None:
        return []
    places = np.flatnonzero(allowed & (scores.values > 0))
    order = places[np.argsort(scores.jobs[places], kind="stable")]
    groups = np.split(order, np.flatnonzero(np.diff(scores.jobs[order])) + 1)
    return [group for group in groups if len(group) > 1]
