"""Which way the tools of a key's conversations take to the model: all of them, as the rule picks them, or `call_tool`.

`call_tool(name, arguments)` and the summary pool never change, so the cached prefix stays and all conversations share
it; definitions are put before the user's message once, when they are first wanted, and are history from then on
(DESIGN §2.1, rendering `text`). What is shared is cheap only if all conversations share it: so the way is chosen for
all of them, by what they are like on average, and a conversation keeps the way it began with.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pegboard.prompt_cache.bill import Outlook, later, salvage, turn
from pegboard.prompt_cache.prices import CachePrices
from pegboard.settings.llm import Way
from pegboard.traffic import Traffic

WAYS: tuple[Way, ...] = ("whole", "tools", "call_tool")
LEAST_SAVING = 0.05
"""Share of the whole bill below which requests are left alone."""
LESS_SURE = 0.15
"""More of it where every turn comes too late for the cache: what is held by then is hard to foretell."""


def cheapest_way(
    traffic: Traffic, prices: CachePrices, total: float, constant: float, ways: Sequence[Way] = WAYS
) -> Way:
    """The cheapest of ``ways``, for tools of ``total`` tokens and ``constant`` ones of `call_tool` with its pool.

    Where all tools are one of them, another has to save something.
    """
    bills = expected_bills(traffic, prices, total, constant)
    best = min(ways, key=bills.__getitem__)
    least = LEAST_SAVING + LESS_SURE * (1 - traffic.returns)
    saves = "whole" not in ways or bills[best] < (1 - least) * bills["whole"]
    return best if saves else "whole"


def expected_bills(traffic: Traffic, prices: CachePrices, total: float, constant: float) -> Mapping[Way, float]:
    """Of a conversation, by the way that all take."""
    return {
        "whole": _begun_alike(total, 0.0, traffic.growth, traffic, prices),
        "tools": _picked(traffic, prices),
        "call_tool": _begun_alike(constant, traffic.wanted, traffic.growth + traffic.added, traffic, prices),
    }


def _begun_alike(shared: float, shown: float, growth: float, traffic: Traffic, prices: CachePrices) -> float:
    """All conversations begin with the same ``shared`` tokens and the system prompt."""
    beginning, new = shared + traffic.system, traffic.asked + shown
    salvaged = salvage(beginning, traffic.kept, prices)
    outlook = Outlook(turns=traffic.turns, growth=growth, returns=traffic.returns)
    return turn(beginning, new, 0.0, prices, salvaged) + later(beginning + new, outlook, prices, salvaged=salvaged)


def _picked(traffic: Traffic, prices: CachePrices) -> float:
    prefix = traffic.wanted + traffic.system
    addition = traffic.called / traffic.news if traffic.news else 0.0
    outlook = Outlook(turns=traffic.turns, growth=traffic.growth, returns=traffic.returns, addition=addition)
    first = turn(prefix, traffic.asked, 0.0, prices, salvage(prefix, traffic.alike, prices))
    return first + later(prefix + traffic.asked, outlook, prices, news=traffic.news)
