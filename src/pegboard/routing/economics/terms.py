"""Explains a request by EHRR's two layers: every term of equations 2 to 7, of servers and of tools."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict
from typing import Any

import numpy as np

from pegboard.routing.economics import Priced

BECAUSE = {"_meta": "its own _meta", "config": "configured", "observed": "seen of its tools"}
SAYS = {
    "config": "configured",
    "_meta": "its server's word",
    "tier": "the paper's tier for it",
    "free": "free: no price",
}


def usd(value: float) -> str:
    """
    >>> usd(0.02489)
    '$0.0249'
    """
    return f"${value:.4f}"


def servers_shown(priced: Priced, runners_up: int) -> list[int]:
    """The shortlisted servers, best first, then the next best with a tool that the caller may use."""
    shortlisted = priced.servers.shortlisted.tolist()
    allowed = set(priced.server_of[priced.allowed].tolist())
    others = [place for place in np.argsort(-priced.servers.utility, kind="stable").tolist() if place in allowed]
    return [*shortlisted, *[place for place in others if place not in shortlisted][:runners_up]]


def server_verdict(priced: Priced, place: int) -> str:
    shortlisted = priced.servers.shortlisted.tolist()
    if place not in shortlisted:
        return f"dropped: not among the best {len(shortlisted)} by utility"
    sign = "≤" if priced.asks[place] <= priced.servers.posted[place] else ">"
    source = priced.ask_sources[place]
    because = "it was asked" if source == "callback" else f"c = {usd(priced.asks[place])} ({BECAUSE[source]}) {sign} τ"
    if priced.accepted[place]:
        return f"kept: {because}, and it accepts (eq. 5)"
    return f"dropped: {because}, and it declines (eq. 5)"


def server_lines(priced: Priced, place: int) -> Iterator[str]:
    """The terms of eqs. 2-5 for one server."""
    p, layer, known = priced.parameters, priced.servers, priced.estimates[0]
    r, variance, failure, latency = (
        float(each[place]) for each in (known.success, known.variance, known.failure, known.latency)
    )
    sim, safe, cost = float(layer.similarity[place]), float(layer.conservative[place]), float(layer.cost[place])
    cap = "" if p.cap is None else f", at most B = {usd(p.cap)}"
    yield f"r~ = max(ε, r {r:.3f} − √σ² {variance:.3f}) = {safe:.3f}"
    yield (
        f"C = (G {layer.overhead[place]:.2f} + L {latency:.2f} s) / max(ε, (1 − p_fail {failure:.3f})·{safe:.3f}) "
        f"= {cost:.2f} s (eq. 2)"
    )
    yield f"U = Sim {sim:.3f} − α_s {p.server_weight:g}·{cost:.2f} = {layer.utility[place]:.3f} (eq. 3)"
    yield (
        f"τ = {p.base:g}·{sim:.3f} + {p.offset:g}·ln(1 + {cost:.2f}/{p.reference:g}){cap} "
        f"= {usd(layer.posted[place])} (eq. 4)"
    )


def tool_lines(priced: Priced, place: int) -> Iterator[str]:
    """The terms of eqs. 6-7 for one tool, and its price compared with the posted one."""
    p, tools, known, server = priced.parameters, priced.tools, priced.estimates[1], priced.server_of[place]
    failure = priced.estimates[0].failure[server]
    price, cost = priced.prices[place], float(tools.cost[place])
    odds = f"max(ε, (1 − p_fail {failure:.3f})·r {known.success[place]:.3f})"
    billed = f" / {odds}" if p.per_attempt else ""
    yield (
        f"C = (G {priced.servers.overhead[server]:.2f} + l {known.latency[place]:.2f} s) / {odds} "
        f"+ κ {p.seconds_per_usd:g}·{usd(price.usd)}{billed} = {cost:.2f} s (eq. 6)"
    )
    yield (
        f"U = Sim {tools.similarity[place]:.3f} − α_t {p.tool_weight:g}·{cost:.2f} = {tools.utility[place]:.3f} (eq. 7)"
    )
    sign = "≤" if tools.feasible[place] else ">"
    yield f"p = {usd(price.usd)} ({SAYS[price.source]}) {sign} τ = {usd(priced.servers.posted[server])}"


def tool_why(priced: Priced, place: int) -> str:
    """Why selection could not take this tool, as a sentence."""
    server = int(priced.server_of[place])
    name, posted = priced.names[server], usd(priced.servers.posted[server])
    match priced.reason(place):
        case "server_not_shortlisted":
            return (
                f"its server {name} has a utility of {priced.servers.utility[server]:.3f}, which is not among "
                f"the best {len(priced.servers.shortlisted)}."
            )
        case "server_declined":
            return f"its server {name} was offered {posted} and did not accept: {server_verdict(priced, server)}."
        case "too_expensive":
            price = priced.prices[place]
            return f"it costs {usd(price.usd)} ({SAYS[price.source]}), but its server {name} is offered {posted}."
        case "too_slow":
            return f"a call is expected to take {priced.estimates[1].latency[place]:.1f} s, which exceeds the deadline."
        case reason:
            return f"{reason.replace('_', ' ')}."


def payload(priced: Priced, runners_up: int) -> dict[str, Any]:
    return {
        "parameters": asdict(priced.parameters),
        "servers": [_server(priced, place) for place in servers_shown(priced, runners_up)],
    }


def tool_terms(priced: Priced, place: int) -> dict[str, Any]:
    known, server = priced.estimates[1], priced.server_of[place]
    numbers = {
        "similarity": priced.tools.similarity[place],
        "overhead": priced.servers.overhead[server],
        "latency": known.latency[place],
        "success": known.success[place],
        "failure": priced.estimates[0].failure[server],
        "price": priced.prices[place].usd,
        "posted": priced.servers.posted[server],
        "cost": priced.tools.cost[place],
        "utility": priced.tools.utility[place],
    }
    return {name: round(float(value), 6) for name, value in numbers.items()} | {
        "price_from": priced.prices[place].source,
        "feasible": bool(priced.tools.feasible[place]),
        "reason": priced.reason(place),
    }


def _server(priced: Priced, place: int) -> dict[str, Any]:
    layer, known = priced.servers, priced.estimates[0]
    shortlisted = layer.shortlisted.tolist()
    numbers = {
        "similarity": layer.similarity[place],
        "success": known.success[place],
        "variance": known.variance[place],
        "failure": known.failure[place],
        "overhead": layer.overhead[place],
        "latency": known.latency[place],
        "conservative_success": layer.conservative[place],
        "cost": layer.cost[place],
        "utility": layer.utility[place],
        "posted": layer.posted[place],
        "ask": priced.asks[place],
    }
    return {
        "server": priced.names[place],
        **{name: round(float(value), 6) for name, value in numbers.items()},
        "ask_from": priced.ask_sources[place],
        "shortlisted": place in shortlisted,
        "accepted": bool(priced.accepted[place]),
        "why": server_verdict(priced, place),
    }
