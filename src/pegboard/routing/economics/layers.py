"""ROUTE (EHRR algorithm 2): ranks servers, offers them a price, and ranks the tools of those that accept.

`shortlist` and `candidates` are its two halves, without I/O; between them the caller gets each server's one-bit answer.
Shapes: s servers, m tools. Places are indices into the arrays.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from pegboard.model import Mask
from pegboard.routing.economics.equations import (
    Array,
    Estimates,
    Parameters,
    Places,
    accepts,
    best,
    chance,
    conservative_success,
    overhead,
    posted_price,
    server_cost,
    server_utility,
    tool_cost,
    tool_utility,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerLayer:
    """Every term of eqs. 2-4 for every server, shape (s,), and ``shortlisted``, S_k: the best k, best first."""

    similarity: Array
    conservative: Array
    overhead: Array
    cost: Array
    utility: Array
    posted: Array
    shortlisted: Places


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolLayer:
    """The terms of eqs. 6-7 for the evaluated ``tools``, those of accepting servers, in order, shape (t,).

    ``feasible`` is p_ij ≤ τ_i. ``chosen``, A_n, are places among all m tools, best first, shape (at most n,).
    """

    tools: Places
    similarity: Array
    cost: Array
    utility: Array
    feasible: Mask
    chosen: Places


@dataclass(frozen=True, slots=True, kw_only=True)
class Routed:
    """The result of ROUTE. ``accepted``, shape (s,), is a_i; it is true only for shortlisted servers."""

    servers: ServerLayer
    accepted: Mask
    tools: ToolLayer

    @property
    def chosen(self) -> Places:
        return self.tools.chosen


DEFAULTS = Parameters()


def shortlist(
    similarity: Array,
    estimates: Estimates,
    connection: Array | float = 0.0,
    *,
    eligible: Mask | None = None,
    parameters: Parameters = DEFAULTS,
) -> ServerLayer:
    """Algorithm 2, lines 1-6 and 10: S_k from Sim(q, f_i), estimates and L^conn_i (seconds) of all servers, shape (s,).

    S_k has only servers in ``eligible``, shape (s,).
    """
    p = parameters
    conservative = conservative_success(estimates.success, estimates.variance, floor=p.floor)
    fixed = np.broadcast_to(overhead(p.route_overhead, connection), similarity.shape)
    cost = server_cost(fixed, estimates.latency, chance(estimates.failure, conservative, floor=p.floor))
    utility = server_utility(similarity, cost, weight=p.server_weight)
    among = np.ones(similarity.shape, np.bool_) if eligible is None else eligible
    return ServerLayer(
        similarity=similarity,
        conservative=conservative,
        overhead=fixed,
        cost=cost,
        utility=utility,
        posted=posted_price(similarity, cost, base=p.base, offset=p.offset, reference=p.reference, cap=p.cap),
        shortlisted=best(utility, among, p.servers),
    )


def accepted_of(layer: ServerLayer, asks: Array) -> Mask:
    """Algorithm 2, lines 7-15, with every c_i (USD, shape (s,)) known: a_i of the shortlisted servers, shape (s,)."""
    accepted = np.zeros(layer.posted.shape, np.bool_)
    accepted[layer.shortlisted] = accepts(asks[layer.shortlisted], layer.posted[layer.shortlisted])
    return accepted


def candidates(
    similarity: Array,
    estimates: Estimates,
    prices: Array,
    server_of: Places,
    *,
    servers: ServerLayer,
    accepted: Mask,
    failure: Array,
    eligible: Mask | None = None,
    parameters: Parameters = DEFAULTS,
) -> ToolLayer:
    """Algorithm 2, lines 16-27: the best n tools by U_ij on accepting servers, at a price of at most τ_i.

    ``similarity``, ``estimates``, ``prices`` (USD) and ``server_of`` (the place of each tool's server) cover all tools,
    shape (m,); ``failure`` is p^fail of the servers, shape (s,), which eq. 6 uses instead of the tools'.
    """
    p = parameters
    within = accepted[server_of]
    tools = np.flatnonzero(within if eligible is None else within & eligible)
    of = server_of[tools]
    odds = chance(failure[of], estimates.success[tools], floor=p.floor)
    cost = tool_cost(
        servers.overhead[of],
        estimates.latency[tools],
        odds,
        prices[tools],
        seconds_per_usd=p.seconds_per_usd,
        per_attempt=p.per_attempt,
    )
    utility = tool_utility(similarity[tools], cost, weight=p.tool_weight)
    feasible = np.asarray(prices[tools] <= servers.posted[of], np.bool_)
    return ToolLayer(
        tools=tools,
        similarity=similarity[tools],
        cost=cost,
        utility=utility,
        feasible=feasible,
        chosen=tools[best(utility, feasible, p.tools)],
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Market:
    """Everything known about servers (shape (s,)) and tools (shape (m,)) before a query.

    ``connection`` is L^conn (seconds), ``asks`` c_i and ``prices`` p_ij (USD a call), ``server_of`` the place of each
    tool's server.
    """

    servers: Estimates
    tools: Estimates
    connection: Array
    asks: Array
    prices: Array
    server_of: Places


def route(
    server_similarity: Array, tool_similarity: Array, market: Market, *, parameters: Parameters = DEFAULTS
) -> Routed:
    """ROUTE from end to end, with every ask known (EHRR algorithm 2)."""
    layer = shortlist(server_similarity, market.servers, market.connection, parameters=parameters)
    accepted = accepted_of(layer, market.asks)
    tools = candidates(
        tool_similarity,
        market.tools,
        market.prices,
        market.server_of,
        servers=layer,
        accepted=accepted,
        failure=market.servers.failure,
        parameters=parameters,
    )
    return Routed(servers=layer, accepted=accepted, tools=tools)
