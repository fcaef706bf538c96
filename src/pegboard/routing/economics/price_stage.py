"""The pipeline's price stage: from relevance to utility, and from allowed tools to those worth their price."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal, Protocol

import numpy as np

from pegboard.catalog import Catalog
from pegboard.model import Mask, Scores, Turn
from pegboard.routing.economics.equations import Array, Estimates, Parameters, Places, similarity
from pegboard.routing.economics.estimates import AskSource, Economics, EstimateArrays
from pegboard.routing.economics.layers import ServerLayer, ToolLayer, accepted_of, candidates, shortlist
from pegboard.routing.economics.tool_prices import Price

Reason = Literal["kept", "not_allowed", "server_not_shortlisted", "server_declined", "too_expensive", "too_slow"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Priced:
    """The terms of both layers for a query. ``tools`` has the terms of all tools, shape (n,).

    ``scores`` are U_ij of all tools; ``among``, shape (n,), marks those that selection may take: allowed, on an
    accepting server, at p_ij ≤ τ_i, and in time. ``estimates`` are those of servers and of tools; ``names`` are the s
    servers.
    """

    scores: Scores
    among: Mask
    allowed: Mask
    in_time: Mask
    names: tuple[str, ...]
    server_of: Places
    servers: ServerLayer
    accepted: Mask
    asks: Array
    ask_sources: tuple[AskSource, ...]
    tools: ToolLayer
    prices: tuple[Price, ...]
    estimates: tuple[Estimates, Estimates]
    parameters: Parameters

    def reason(self, place: int) -> Reason:
        """Why a tool may or may not be chosen."""
        server = self.server_of[place]
        if self.among[place]:
            return "kept"
        if not self.allowed[place]:
            return "not_allowed"
        if server not in self.servers.shortlisted:
            return "server_not_shortlisted"
        if not self.accepted[server]:
            return "server_declined"
        return "too_slow" if self.tools.feasible[place] else "too_expensive"


@dataclass(frozen=True, slots=True, kw_only=True)
class StageResult:
    """The scores for selection, the tools it may choose ``among``, and EHRR's terms if they were computed."""

    scores: Scores | None
    among: Mask
    priced: Priced | None = None


class PriceStage(Protocol):
    """The stage between scores and selection."""

    async def apply(self, scores: Scores, allowed: Mask, turn: Turn) -> StageResult: ...


async def apply_stage(stage: PriceStage | None, scores: Scores | None, allowed: Mask, turn: Turn) -> StageResult:
    """Apply the stage: utilities, and the tools worth their price. Without a stage or scores, nothing changes."""
    if stage is None or scores is None:
        return StageResult(scores=scores, among=allowed)
    return await stage.apply(scores, allowed, turn)


class Pricing:
    """EHRR's two layers over one catalog snapshot."""

    def __init__(self, catalog: Catalog, economics: Economics) -> None:
        self._economics = economics
        self._books = EstimateArrays(catalog, economics)
        self._everything = np.ones(len(catalog), np.bool_)

    async def apply(self, scores: Scores, allowed: Mask, turn: Turn) -> StageResult:
        priced = await self.price(scores, allowed, turn)
        return StageResult(scores=priced.scores, among=priced.among, priced=priced)

    async def price(self, scores: Scores, allowed: Mask, turn: Turn) -> Priced:
        """Price tools from scores with the parts ``cosine`` and ``server``, each of shape (n,).

        The turn's ``max_price`` is a cap B for this query; a tool whose expected seconds, G_i + l_ij, exceed the turn's
        ``deadline`` is not worth its price.
        """
        await self._economics.knowledge.refresh()
        return self.priced(scores, allowed, max_price=turn.max_price, deadline=turn.deadline)

    def priced(
        self, scores: Scores, allowed: Mask, *, max_price: float | None = None, deadline: float | None = None
    ) -> Priced:
        """Like `price`, without refreshing the statistics."""
        books, parameters = self._books, self._economics.parameters.capped(max_price)
        estimates = books.estimates()
        of_servers, of_tools = estimates
        asks, sources = books.asks()
        of_interest = np.zeros(len(books.servers), np.bool_)
        of_interest[books.server_of[allowed]] = True
        layer = shortlist(
            similarity(scores.parts["server"][books.first_of]),
            of_servers,
            books.connections(),
            eligible=of_interest,
            parameters=parameters,
        )
        accepted, sources = self._answers(layer, accepted_of(layer, asks), sources)
        tools = candidates(
            similarity(scores.parts["cosine"]),
            of_tools,
            books.prices,
            books.server_of,
            servers=layer,
            accepted=np.ones_like(accepted),
            failure=of_servers.failure,
            parameters=parameters,
        )
        seconds = layer.overhead[books.server_of] + of_tools.latency
        in_time = self._everything if deadline is None else np.asarray(seconds <= deadline, np.bool_)
        return Priced(
            scores=self._utilities(scores, layer, tools),
            among=np.asarray(allowed & tools.feasible & accepted[books.server_of] & in_time, np.bool_),
            allowed=allowed,
            in_time=in_time,
            names=books.servers,
            server_of=books.server_of,
            servers=layer,
            accepted=accepted,
            asks=asks,
            ask_sources=sources,
            tools=tools,
            prices=books.price_list,
            estimates=estimates,
            parameters=parameters,
        )

    def _answers(
        self, layer: ServerLayer, known: Mask, sources: tuple[AskSource, ...]
    ) -> tuple[Mask, tuple[AskSource, ...]]:
        """The answer of each shortlisted server: its own if it gives one, otherwise that of its ask."""
        accept = self._economics.accept
        if accept is None:
            return known, sources
        answers = {
            place: accept(self._books.servers[place], float(layer.posted[place]))
            for place in layer.shortlisted.tolist()
        }
        accepted = known.copy()
        for place, answer in answers.items():
            accepted[place] = known[place] if answer is None else answer
        return accepted, tuple(
            "callback" if answers.get(place) is not None else source for place, source in enumerate(sources)
        )

    def _utilities(self, scores: Scores, layer: ServerLayer, tools: ToolLayer) -> Scores:
        parts = {
            "similarity": tools.similarity,
            "cost": tools.cost,
            "price": self._books.prices,
            "posted": layer.posted[self._books.server_of],
            "server_utility": layer.utility[self._books.server_of],
        }
        return replace(
            scores,
            values=tools.utility.astype(np.float32),
            scale="utility",
            parts={name: values.astype(np.float32) for name, values in parts.items()},
        )
