"""The answer of ROUTE: the best tools with their prices, or why there are none and what to try next (EHRR)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from pegboard.catalog import Catalog
from pegboard.model import ToolId
from pegboard.routing.economics.equations import chance
from pegboard.routing.economics.price_stage import Priced, Reason
from pegboard.routing.economics.tool_prices import Price

REFINE = "Describe more exactly what is needed, or ask for another operation."
LATER = "Try again in a moment."


@dataclass(frozen=True, slots=True, kw_only=True)
class Subtask:
    """q_s, what the model needs done, in its own words: the domain, the operation, and its target.

    >>> str(Subtask(text="find the issues about the login page", domain="GitHub", operation="search"))
    'find the issues about the login page (GitHub, search)'
    """

    text: str = ""
    domain: str = ""
    operation: str = ""
    target: str = ""

    def __str__(self) -> str:
        fields = ", ".join(filter(None, (self.domain, self.operation, self.target)))
        return f"{self.text} ({fields})" if self.text and fields else self.text or fields


@dataclass(frozen=True, slots=True, kw_only=True)
class Offer:
    """A tool worth its price p_ij. ``latency`` is the expected seconds of a call, G_i + l_ij; ``success`` the
    probability that one attempt succeeds, (1 − p_fail_i)·r_ij; ``score`` is U_ij."""

    tool: ToolId
    price: Price
    latency: float
    success: float
    score: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Offers:
    """Tools, the best first. ``why`` are sentences on what was not offered, ``remedies`` what to try next; both may be
    empty."""

    tools: tuple[Offer, ...] = ()
    why: tuple[str, ...] = ()
    remedies: tuple[str, ...] = ()


def offers_of(priced: Priced, catalog: Catalog, places: Sequence[int]) -> tuple[Offer, ...]:
    """The offers of the tools at these places."""
    return tuple(
        Offer(
            tool=catalog.tools[place].id,
            price=priced.prices[place],
            latency=_seconds(priced, place),
            success=_odds(priced, place),
            score=float(priced.tools.utility[place]),
        )
        for place in places
    )


def no_offers(
    priced: Priced, catalog: Catalog, *, max_price: float | None = None, deadline: float | None = None
) -> Offers:
    """Why no tool is worth its price, in the order of the two layers, and what would change that."""
    reasons: dict[Reason, list[int]] = {}
    for place in np.flatnonzero(priced.allowed).tolist():
        reasons.setdefault(priced.reason(place), []).append(place)
    if not reasons:
        return Offers(why=("You may not use any tool here at this point.",))
    dear, slow = reasons.get("too_expensive", []), reasons.get("too_slow", [])
    why = [*_declined(priced, reasons.get("server_declined", ()))]
    remedies = []
    if dear:
        place = min(dear, key=lambda each: priced.prices[each].usd)
        least, posted = priced.prices[place].usd, priced.servers.posted[priced.server_of[place]]
        why.append(
            f"{_are(dear)} too expensive: the cheapest, {catalog.tools[place].id}, costs ${least:.4g} a call, "
            f"but ${posted:.4g} is offered."
        )
    if slow:
        place = min(slow, key=lambda each: _seconds(priced, each))
        why.append(
            f"{_are(slow)} too slow for a deadline of {deadline:g} s: the fastest, {catalog.tools[place].id}, is "
            f"expected to take {_seconds(priced, place):.3g} s."
        )
        remedies.append(f"Allow a deadline of {_seconds(priced, place):.3g} s or more.")
    if kept := reasons.get("kept"):
        why.append(f"{_are(kept)} worth the price, but beyond the limits of the configuration.")
    if others := reasons.get("server_not_shortlisted"):
        why.append(f"The servers of {_tools(others)} were not asked: they are less relevant or less reliable.")
    if (limit := _bound(priced, [*dear, *reasons.get("server_declined", ())], max_price)) is not None:
        remedies.insert(0, f"Allow a higher max_price: ${limit:.4g} or more.")
    return Offers(why=tuple(why), remedies=(*remedies, REFINE))


def _declined(priced: Priced, places: Iterable[int]) -> Iterator[str]:
    for server in dict.fromkeys(int(priced.server_of[place]) for place in places):
        asks = "" if priced.ask_sources[server] == "callback" else f": it asks ${priced.asks[server]:.4g}"
        yield f"Server {priced.names[server]} does not accept calls at ${priced.servers.posted[server]:.4g}{asks}."


def _bound(priced: Priced, places: Iterable[int], max_price: float | None) -> float | None:
    """The lowest ``max_price``, USD, that would admit one of the refused tools; None if the limit was not the
    reason."""
    if max_price is None:
        return None
    wanted = [
        max(priced.asks[server], priced.prices[place].usd)
        for place in places
        if priced.servers.posted[server := int(priced.server_of[place])] >= max_price
        and priced.ask_sources[server] != "callback"
    ]
    return float(min(wanted)) if wanted else None


def _tools(places: Sequence[int]) -> str:
    return "1 tool" if len(places) == 1 else f"{len(places)} tools"


def _are(places: Sequence[int]) -> str:
    return f"{_tools(places)} {'is' if len(places) == 1 else 'are'}"


def _seconds(priced: Priced, place: int) -> float:
    return float(priced.servers.overhead[priced.server_of[place]] + priced.estimates[1].latency[place])


def _odds(priced: Priced, place: int) -> float:
    servers, tools = priced.estimates
    failure = servers.failure[priced.server_of[place]]
    return float(chance(failure, tools.success[place], floor=priced.parameters.floor))
