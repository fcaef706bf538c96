"""Economics-aware hierarchical routing (EHRR, seed 001): its formulas and algorithms, pure, over plain arrays."""

from pegboard.routing.economics.books import Economics, no_connections
from pegboard.routing.economics.episode import Decide, Episode, Execute, Route, Stop, episode
from pegboard.routing.economics.equations import (
    Array,
    Estimates,
    accepts,
    best,
    chance,
    conservative_success,
    cosines,
    observed,
    overhead,
    posted_price,
    server_cost,
    server_utility,
    similarity,
    time_to_success,
    tool_cost,
    tool_utility,
)
from pegboard.routing.economics.knowledge import Knowledge
from pegboard.routing.economics.layers import (
    Market,
    Routed,
    ServerLayer,
    ToolLayer,
    accepted_of,
    candidates,
    route,
    shortlist,
)
from pegboard.routing.economics.loop import solve
from pegboard.routing.economics.offers import Offer, Offers, Subtask
from pegboard.routing.economics.parameters import Parameters
from pegboard.routing.economics.prices import Price, PriceList
from pegboard.routing.economics.pricing import Priced, Pricing, Worth
from pegboard.routing.economics.ties import NearTies

__all__ = [
    "Array",
    "Decide",
    "Economics",
    "Episode",
    "Estimates",
    "Execute",
    "Knowledge",
    "Market",
    "NearTies",
    "Offer",
    "Offers",
    "Parameters",
    "Price",
    "PriceList",
    "Priced",
    "Pricing",
    "Route",
    "Routed",
    "ServerLayer",
    "Stop",
    "Subtask",
    "ToolLayer",
    "Worth",
    "accepted_of",
    "accepts",
    "best",
    "candidates",
    "chance",
    "conservative_success",
    "cosines",
    "episode",
    "no_connections",
    "observed",
    "overhead",
    "posted_price",
    "route",
    "server_cost",
    "server_utility",
    "shortlist",
    "similarity",
    "solve",
    "time_to_success",
    "tool_cost",
    "tool_utility",
]
