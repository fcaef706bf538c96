"""Breaks near ties by price and failure, under profiles that rank by relevance."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from pegboard.catalog import Catalog
from pegboard.model import Mask, Scores, Turn
from pegboard.routing.economics.equations import Array, Places, chance, overhead, tool_cost
from pegboard.routing.economics.estimates import Economics, EstimateArrays
from pegboard.routing.economics.price_stage import StageResult

CHEAPER = 2.0
"""The factor by which a tool must cost less to replace another, so that live latency alone does not change a
selection."""


class NearTies:
    """Among tools that do the same job on different servers with nearly the best one's probability, the one that costs
    far less (C^t, EHRR eq. 6) swaps scores with the best.

    The sum of scores and all other scores stay the same.
    """

    def __init__(self, catalog: Catalog, economics: Economics) -> None:
        self._economics = economics
        self._books = EstimateArrays(catalog, economics)

    async def apply(self, scores: Scores, allowed: Mask, turn: Turn) -> StageResult:
        """The scores with some of them swapped, and ``allowed`` unchanged."""
        jobs = _of_one_job(scores, allowed)
        if not jobs:
            return StageResult(scores=scores, among=allowed)
        await self._economics.knowledge.refresh()
        values = scores.values.copy()
        cost, share = self._costs(), 1 - self._economics.near_ties
        for members in jobs:
            best = members[np.argmax(values[members])]
            near = members[values[members] >= share * values[best]]
            cheapest = near[np.argmin(cost[near])]
            if cost[cheapest] * CHEAPER <= cost[best]:
                values[[best, cheapest]] = values[[cheapest, best]]
        return StageResult(scores=replace(scores, values=values), among=allowed)

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
    """The places of allowed tools by job, for jobs with more than one tool."""
    if scores.jobs is None:
        return []
    places = np.flatnonzero(allowed & (scores.values > 0))
    order = places[np.argsort(scores.jobs[places], kind="stable")]
    groups = np.split(order, np.flatnonzero(np.diff(scores.jobs[order])) + 1)
    return [group for group in groups if len(group) > 1]
