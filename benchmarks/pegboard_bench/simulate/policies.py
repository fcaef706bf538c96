"""What is compared. A policy knows texts, posted prices and the outcomes of its own calls: nothing else of the world.

All but `saturation` offer three tools at a time. Where a policy has a cut, it is to five servers (EHRR table V).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

import numpy as np

from pegboard.model import Mask
from pegboard.routing.economics import (
    Parameters,
    accepted_of,
    best,
    candidates,
    chance,
    overhead,
    shortlist,
    tool_cost,
    tool_utility,
)
from pegboard_bench.simulate.calls import Happened
from pegboard_bench.simulate.chooser import Offer, Policy
from pegboard_bench.simulate.learnt import Learnt
from pegboard_bench.simulate.relevance import Relevance
from pegboard_bench.simulate.world import ROUTING, Numbers, Places

TABLE_V = Parameters(route_overhead=ROUTING)
EVERY_SERVER = replace(TABLE_V, servers=None)
TENTH = replace(TABLE_V, server_weight=TABLE_V.server_weight / 10, tool_weight=TABLE_V.tool_weight / 10)
"""A second weighs a tenth of what it does in table V: the paper fitted the weights to another encoder's cosines."""
SERVERS, TOOLS = 5, 3
"""k and n."""
CONTEXT = 100_000
"""Tokens of definitions that fit into a prompt, of a window of 128,000."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Known:
    """What a policy may know before its first call. ``asks``, shape (s,), is c_i: the mean price of a server's tools.

    ``original`` is the relevance for the text of the task that a query belongs to.
    """

    relevance: Relevance
    original: Relevance
    server_of: Places
    prices: Numbers
    asks: Numbers
    tokens: Numbers


class Saturation:
    """All tools, in the order of the catalog, as many as fit into the prompt."""

    def __init__(self, known: Known) -> None:
        self._places = np.flatnonzero(known.tokens.cumsum() <= CONTEXT)

    def route(self, query: int, left: Mask) -> Offer:
        return Offer(places=self._places, ranking=self._places, routed=False)

    def observe(self, place: int, happened: Happened) -> None: ...


class BySimilarity:
    """Tools by relevance alone; with a ``cut`` those of the most similar servers, as RAG-MCP in the paper."""

    def __init__(self, known: Known, *, tools: Numbers, servers: Numbers, cut: bool) -> None:
        self._known, self._tools, self._servers, self._cut = known, tools, servers, cut

    def route(self, query: int, left: Mask) -> Offer:
        among = left
        if self._cut:
            servers = _with_tools(left, self._known)
            kept = np.zeros_like(servers)
            kept[best(self._servers[query], servers, SERVERS)] = True
            among = left & kept[self._known.server_of]
        ranking = best(self._tools[query], among, None)
        return Offer(places=ranking[:TOOLS], ranking=ranking)

    def observe(self, place: int, happened: Happened) -> None: ...


class Ehrr:
    """Algorithm 2, with statistics by eq. 8.

    Without ``auction`` every server accepts and no price is too high. Without ``execution`` the estimates stay what
    they are before the first call, so that C^s is the same for all servers and C^t differs by price alone. Where it is
    ``neutral``, r~ is r: risk is not held against a server.
    """

    def __init__(
        self,
        known: Known,
        parameters: Parameters = TABLE_V,
        *,
        auction: bool = True,
        execution: bool = True,
        neutral: bool = False,
    ) -> None:
        self._known, self._parameters = known, parameters
        self._auction, self._execution, self._neutral = auction, execution, neutral
        self._learnt = Learnt(len(known.asks), known.server_of)

    def route(self, query: int, left: Mask) -> Offer:
        known, learnt = self._known, self._learnt
        servers = learnt.servers
        layer = shortlist(
            known.relevance.servers[query],
            replace(servers, variance=np.zeros_like(servers.variance)) if self._neutral else servers,
            learnt.connection,
            eligible=_with_tools(left, known),
            parameters=self._parameters,
        )
        accepted = accepted_of(layer, known.asks)
        if not self._auction:
            accepted[layer.shortlisted] = True
            layer = replace(layer, posted=np.full_like(layer.posted, np.inf))
        found = candidates(
            known.relevance.tools[query],
            learnt.tools,
            known.prices,
            known.server_of,
            servers=layer,
            accepted=accepted,
            failure=servers.failure,
            eligible=left,
            parameters=self._parameters,
        )
        return Offer(places=found.chosen, ranking=found.tools[best(found.utility, found.feasible, None)])

    def observe(self, place: int, happened: Happened) -> None:
        if self._execution:
            self._learnt.observe(place, happened)


class WithEconomics:
    """`hybrid`'s probability P with the terms of eq. 6, of all tools: what it knows of servers is evidence, no cut.

    P·exp(−α_t·C^t): costs decide between tools that are about as relevant, and never bring up one that is not. With
    ``additive``, P − α_t·C^t, as eq. 7 has it. A tool that was never called is taken to be as its server is.
    """

    def __init__(self, known: Known, *, additive: bool = False) -> None:
        self._known, self._additive = known, additive
        self._learnt = Learnt(len(known.asks), known.server_of)

    def route(self, query: int, left: Mask) -> Offer:
        known, p, tools = self._known, TABLE_V, self._learnt.with_servers()
        cost = tool_cost(
            overhead(p.route_overhead, self._learnt.connection[known.server_of]),
            tools.latency,
            chance(tools.failure, tools.success, floor=p.floor),
            known.prices,
            seconds_per_usd=p.seconds_per_usd,
            per_attempt=p.per_attempt,
        )
        relevant = known.relevance.hybrid[query]
        if self._additive:
            utility = tool_utility(relevant, cost, weight=p.tool_weight)
        else:
            utility = relevant * np.exp(-p.tool_weight * cost)
        ranking = best(utility, left, None)
        return Offer(places=ranking[:TOOLS], ranking=ranking)

    def observe(self, place: int, happened: Happened) -> None:
        self._learnt.observe(place, happened)


def _with_tools(left: Mask, known: Known) -> Mask:
    """The servers that have tools left, shape (s,)."""
    found = np.zeros(len(known.asks), np.bool_)
    found[known.server_of[left]] = True
    return found


def _rag(of: Relevance, known: Known, *, cut: bool = True) -> Policy:
    return BySimilarity(known, tools=of.tools, servers=of.servers, cut=cut)


def _hybrid(known: Known, *, cut: bool) -> Policy:
    return BySimilarity(known, tools=known.relevance.hybrid, servers=known.relevance.servers, cut=cut)


POLICIES: Mapping[str, Callable[[Known], Policy]] = {
    "saturation": Saturation,
    "rag_mcp": lambda known: _rag(known.relevance, known),
    "rag_mcp_task_text": lambda known: _rag(known.original, known),
    "rag_mcp_flat": lambda known: _rag(known.relevance, known, cut=False),
    "ehrr": Ehrr,
    "ehrr_neutral": lambda known: Ehrr(known, neutral=True),
    "ehrr_tenth": lambda known: Ehrr(known, TENTH),
    "ehrr_neutral_tenth": lambda known: Ehrr(known, TENTH, neutral=True),
    "ehrr_no_auction": lambda known: Ehrr(known, auction=False),
    "ehrr_no_execution": lambda known: Ehrr(known, execution=False),
    "ehrr_no_hierarchy": lambda known: Ehrr(known, EVERY_SERVER),
    "hybrid": lambda known: _hybrid(known, cut=False),
    "hybrid_cut": lambda known: _hybrid(known, cut=True),
    "hybrid_economics": WithEconomics,
    "hybrid_additive": lambda known: WithEconomics(known, additive=True),
}
