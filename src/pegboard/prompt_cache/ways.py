"""How the tools of a key's conversations reach the model: all of them, as the rule picks them, through `call_tool`, or
deferred.

`call_tool(name, arguments)` and the summary pool never change, so the prefix stays cached and all conversations share
it; definitions are put before the user's message when they are first needed and are history from then on. With
deferred tools the prefix has the search tool in their place, and references follow the user's message. Sharing pays
only if all conversations do it: so the way is chosen for all conversations of a key, by their averages, and each
conversation keeps the way it began with.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from pegboard.prompt_cache.bill import Outlook, later, salvage, turn
from pegboard.prompt_cache.cache_prices import CachePrices
from pegboard.settings.llm import Way
from pegboard.traffic import Traffic

WAYS: tuple[Way, ...] = ("whole", "tools", "call_tool", "defer")
LEAST_SAVING = 0.05
"""Requests are left alone if less than this share of the whole bill would be saved."""
LESS_SURE = 0.15
"""Added to it if every turn comes too late for the cache, as what is held by then is hard to predict."""
REFERENCE = 60
"""Tokens of a search and its result in the history, without the definitions."""
SEARCHED = 0.2
"""Prior: the share of intents for which the model searches for deferred tools, and the least share of conversations in
which it searches for tools that were left out. Through `call_tool` it may call a tool unseen."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Begun:
    """A conversation under way whose requests had all their tools. ``answers`` counts them. Tokens: ``behind`` the
    tools, cached with them with probability ``warm``, and new ones ``ahead``."""

    answers: int
    behind: float
    ahead: float
    warm: float


def cheapest_way(
    traffic: Traffic,
    prices: CachePrices,
    total: float,
    constant: float,
    ways: Sequence[Way] = WAYS[:3],
    *,
    search: float = 0.0,
    way_back: float = 0.0,
    begun: Begun | None = None,
) -> Way:
    """The cheapest of ``ways``, for tools of ``total`` tokens; `call_tool` with its pool has ``constant`` tokens, and
    the tool that searches for deferred ones ``search``, the one that is offered beside picked tools ``way_back``. A
    conversation that has ``begun`` is compared from here on.

    If `whole` is one of the ways, another way has to save at least a certain share.
    """
    if begun is None:
        bills = expected_bills(traffic, prices, total, constant, search, way_back)
    else:
        bills = bills_from_here(traffic, prices, total, constant, search, begun, way_back)
    best = min(ways, key=bills.__getitem__)
    least = LEAST_SAVING + LESS_SURE * (1 - traffic.returns)
    saves = "whole" not in ways or bills[best] < (1 - least) * bills["whole"]
    return best if saves else "whole"


def expected_bills(
    traffic: Traffic, prices: CachePrices, total: float, constant: float, search: float = 0.0, way_back: float = 0.0
) -> Mapping[Way, float]:
    """The expected bill of a conversation for each way."""
    return {
        "whole": _begun_alike(total, 0.0, traffic.growth, traffic, prices),
        "tools": _picked(traffic, prices, way_back),
        "call_tool": _begun_alike(constant, traffic.wanted, traffic.growth + traffic.added, traffic, prices),
        "defer": _deferred(search, traffic, prices),
    }


def bills_from_here(
    traffic: Traffic,
    prices: CachePrices,
    total: float,
    constant: float,
    search: float,
    begun: Begun,
    way_back: float = 0.0,
) -> Mapping[Way, float]:
    """The expected bill of the rest of a conversation for each way: only `whole` finds what is cached of it."""
    turns = max(traffic.remaining(begun.answers), 1.0)

    def bill(tools: float, shown: float, added: float, *, warm: float = 0.0, news: float = 0.0) -> float:
        new = begun.ahead + shown
        addition = traffic.called / traffic.news if news else 0.0
        outlook = Outlook(turns=turns, growth=traffic.growth + added, returns=traffic.returns, addition=addition)
        first = turn(tools + begun.behind, new, warm, prices)
        return first + later(tools + begun.behind + new, outlook, prices, news=news)

    referred = REFERENCE * traffic.news
    searches = SEARCHED * (1 + traffic.news * (turns - 1))
    picked = traffic.wanted + way_back
    return {
        "whole": bill(total, 0.0, 0.0, warm=begun.warm),
        "tools": bill(picked, 0.0, 0.0, news=traffic.news)
        + _searched(picked + begun.behind + begun.ahead, turns, traffic, prices, way_back),
        "call_tool": bill(constant, traffic.wanted, traffic.added),
        "defer": bill(search, traffic.wanted + REFERENCE, traffic.added + referred)
        + searches * turn(search + begun.behind + begun.ahead + traffic.wanted, REFERENCE, 1.0, prices),
    }


def _begun_alike(shared: float, shown: float, growth: float, traffic: Traffic, prices: CachePrices) -> float:
    """The bill if all conversations begin with the same ``shared`` tokens and the system text."""
    beginning, new = shared + traffic.system, traffic.asked + shown
    salvaged = salvage(beginning, traffic.kept, prices)
    outlook = Outlook(turns=traffic.turns, growth=growth, returns=traffic.returns)
    return turn(beginning, new, 0.0, prices, salvaged) + later(beginning + new, outlook, prices, salvaged=salvaged)


def _deferred(search: float, traffic: Traffic, prices: CachePrices) -> float:
    """The bill if tools are referred to when they are relevant; for a share of intents the model searches besides,
    which is another reading of what was just sent."""
    growth = traffic.growth + traffic.added + REFERENCE * traffic.news
    later_turns = max(traffic.turns - 1, 0.0)
    prefix = search + traffic.system + traffic.asked + traffic.wanted + growth * later_turns / 2
    searches = SEARCHED * (1 + traffic.news * later_turns)
    return _begun_alike(search, traffic.wanted + REFERENCE, growth, traffic, prices) + searches * turn(
        prefix, REFERENCE, 1.0, prices
    )


def _picked(traffic: Traffic, prices: CachePrices, way_back: float) -> float:
    prefix = traffic.wanted + way_back + traffic.system
    addition = traffic.called / traffic.news if traffic.news else 0.0
    outlook = Outlook(turns=traffic.turns, growth=traffic.growth, returns=traffic.returns, addition=addition)
    first = turn(prefix, traffic.asked, 0.0, prices, salvage(prefix, traffic.alike, prices))
    return (
        first
        + later(prefix + traffic.asked, outlook, prices, news=traffic.news)
        + _searched(prefix + traffic.asked, traffic.turns, traffic, prices, way_back)
    )


def _searched(prefix: float, turns: float, traffic: Traffic, prices: CachePrices, way_back: float) -> float:
    """The bill of searches for tools that were left out, each of which has everything written again.

    Searches that were seen are turns with news (`Turned`). Conversations with all tools search for none, so that news
    alone would say too little: the prior says how often a conversation searches at least.
    """
    if not way_back:
        return 0.0
    unseen = max(SEARCHED - traffic.news * max(turns - 1, 0.0), 0.0)
    return unseen * turn(prefix, REFERENCE, 0.0, prices)
