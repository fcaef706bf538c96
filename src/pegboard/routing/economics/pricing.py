"""The pipeline's price stage: from relevance to utility, and from what may be used to what is worth its price."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal, Protocol

import numpy as np

from pegboard.catalog import Catalog
from pegboard.model import Mask, Scores, Turn
from pegboard.routing.economics.books import AskSource, Books, Economics
from pegboard.routing.economics.equations import Array, Estimates, Places, similarity
from pegboard.routing.economics.layers import ServerLayer, ToolLayer, accepted_of, candidates, shortlist
from pegboard.routing.economics.parameters import Parameters
from pegboard.routing.economics.prices import Price

Reason = Literal["kept", "not_allowed", "server_not_shortlisted", "server_declined", "too_expensive", "too_slow"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Priced:
    """What the two layers made of a query, term by term. ``tools`` has the terms of all tools, shape (n,).

    ``scores`` are U_ij of all tools, and ``among``, shape (n,), those that selection may take: allowed, on an accepted
    server, at p_ij ≤ τ_i, and in time. ``estimates`` are those of servers and of tools; ``names`` the s servers.
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
        """Why a tool may be chosen, or may not."""
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


class Worth(Protocol):
    """What stands between scores and selection."""

    async def worth(self, scores: Scores, allowed: Mask, turn: Turn) -> tuple[Scores, Mask]:
        """The scores that selection goes by, and what it may take of ``allowed``."""
        ...


async def worth(stage: Worth | None, scores: Scores | None, allowed: Mask, turn: Turn) -> tuple[Scores | None, Mask]:
    """The utilities of tools, and those worth their price; without prices, or scores, all as it was."""
    return (scores, allowed) if stage is None or scores is None else await stage.worth(scores, allowed, turn)


class Pricing:
    """EHRR's two layers over one catalog snapshot."""

    def __init__(self, catalog: Catalog, economics: Economics) -> None:
        self._economics = economics
        self._books = Books(catalog, economics)
        self._everything = np.ones(len(catalog), np.bool_)

    async def worth(self, scores: Scores, allowed: Mask, turn: Turn) -> tuple[Scores, Mask]:
        priced = await self.price(scores, allowed, turn)
        return priced.scores, priced.among

    async def price(self, scores: Scores, allowed: Mask, turn: Turn) -> Priced:
        """Scores with the parts ``cosine`` and ``server``, each of shape (n,), to utilities and those worth it.

        The turn's ``max_price`` is a cap B for its query alone; a tool whose call is expected to take longer than its
        ``deadline``, G_i + l_ij, is not worth it.
        """
        await self._economics.knowledge.refresh()
        return self.priced(scores, allowed, max_price=turn.max_price, deadline=turn.deadline)

    def priced(
        self, scores: Scores, allowed: Mask, *, max_price: float | None = None, deadline: float | None = None
    ) -> Priced:
        """`price` by what is known already."""
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
        """The bit of each shortlisted server: its own where it says one, what its ask makes it else."""
        accept = self._economics.accept
        if accept is None:
            return known, sources
        said = {
            place: accept(self._books.servers[place], float(layer.posted[place]))
            for place in layer.shortlisted.tolist()
        }
        accepted = known.copy()
        for place, answer in said.items():
            accepted[place] = known[place] if answer is None else answer
        return accepted, tuple(
            "callback" if said.get(place) is not None else source for place, source in enumerate(sources)
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
