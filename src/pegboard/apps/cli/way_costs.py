"""What each way of sending a request's tools would be billed, and which the cost rule would choose: for `route`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from pegboard.catalog import BpeCounter
from pegboard.errors import ConfigError
from pegboard.gateways.llm.conversation.stickiness import LEAST_SEEN
from pegboard.gateways.llm.formats.registry import FORMATS, priced_as
from pegboard.prompt_cache import (
    WAYS,
    CachePrices,
    EmulationKind,
    Seen,
    Traffic,
    Way,
    cheapest_way,
    deferral_support,
    expected_bills,
    known_prices,
)
from pegboard.prompt_cache.cache_prices import prices_of
from pegboard.routing.explain import Explanation
from pegboard.traffic import PRIORS
from pegboard.wire_formats import upstream_formats, wire_tool

CALL_TOOL = ("call_tool", "Call a tool by its name", {"type": "object", "properties": {"name": {"type": "string"}}})
"""About what a gateway sends in place of the tools, besides the summaries."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WayCosts:
    """The expected bill of a conversation by way, in plain input tokens, and the ``chosen`` one. ``traffic`` is what
    was assumed of the conversation, as none was seen. ``emulated``: what `defer` is in the formats without a search."""

    provider: str
    model: str
    prices: CachePrices
    known: bool
    traffic: Traffic
    bills: Mapping[Way, float]
    chosen: Way
    emulated: Mapping[str, EmulationKind]

    def payload(self) -> dict[str, Any]:
        return {
            "provider": self.provider,
            "model": self.model,
            "prices_known": self.known,
            "bills": {way: round(bill) for way, bill in self.bills.items()},
            "chosen": self.chosen,
            "defer_emulated_by": dict(self.emulated),
            "assumed_turns": self.traffic.turns,
        }

    def lines(self) -> Iterator[str]:
        whole, best = self.bills["whole"], self.bills[self.chosen]
        kind = f"read {self.prices.read:g}, write {self.prices.write:g}, kept for {self.prices.ttl:g} s"
        priced = kind if self.known else "no cache price is known, so that every token costs 1"
        marked = "" if self.prices.automatic else ", if the request marks what is to be cached"
        where = f"{self.provider}, {self.model}" if self.model else self.provider
        turns = f"a conversation of about {self.traffic.turns:g} turns"
        yield f"At {where} ({priced}{marked}), {turns} is expected to be billed, in plain input tokens:"
        for way, bill in sorted(self.bills.items(), key=lambda item: item[1]):
            yield f"  {way}: {bill:,.0f} ({bill / whole:.0%} of all tools on every turn)"
        why = "no other way saves enough" if self.chosen == "whole" else f"it saves {1 - best / whole:.0%}"
        for name, emulation in self.emulated.items():
            yield f"In {name}, whose API has no search for deferred tools, `defer` is emulated by {emulation}."
        yield f"The cost rule would choose {self.chosen}: {why}. No traffic was seen: turns and growth are the priors."
        yield f"A gateway with several ways sends `tools` until it has seen {LEAST_SEEN} conversations of a key."


def way_costs(reasons: Explanation, provider: str, model: str) -> WayCosts:
    """The costs for the tools of a decision. Raises ConfigError for an unknown provider."""
    if provider not in upstream_formats():
        raise ConfigError(f"There is no provider {provider!r}.", remedy=f"Known are {', '.join(upstream_formats())}.")
    total, name = float(sum(reasons.catalog.token_counts)), priced_as(provider)
    prices = prices_of(known_prices(), name, model)
    possible = {"whole": True, "tools": True, "call_tool": _has_call_tool(name), "defer": _defers(name, model)}
    ways = [way for way in WAYS if possible[way]]
    constant = reasons.decision.phase1_tokens + BpeCounter().count([str(wire_tool("openai", *CALL_TOOL))])[0]
    traffic = replace(Seen().traffic(PRIORS.system, total), wanted=float(reasons.decision.phase2_tokens))
    searched = float(constant) if any(_searches(name)) else 0.0
    bills = expected_bills(traffic, prices, total, float(constant), search=float(constant), way_back=searched)
    return WayCosts(
        provider=provider,
        model=model,
        prices=prices,
        known=any(row.fits(name, model) for row in known_prices()),
        traffic=traffic,
        bills={way: bills[way] for way in ways},
        chosen=cheapest_way(traffic, prices, total, float(constant), ways, search=float(constant), way_back=searched),
        emulated=dict(_emulated(name, model)),
    )


def _searches(provider: str) -> Iterator[bool]:
    """Of each of the provider's formats, whether the model can search for tools that were left out."""
    return (each.tool_search is not None for each in FORMATS if each.provider.name == provider)


def _has_call_tool(provider: str) -> bool:
    return any(each.call_tool is not None for each in FORMATS if each.provider.name == provider)


def _emulated(provider: str, model: str) -> Iterator[tuple[str, EmulationKind]]:
    """The provider's formats in which this model's tools cannot be deferred, and what takes the place of that."""
    for each in FORMATS:
        if each.provider.name == provider and each.tool_search is not None:
            support = deferral_support(each.name, model)
            if each.deferral is None or support.search == "none":
                yield each.name, support.emulated


def _defers(provider: str, model: str) -> bool:
    of_provider = (each for each in FORMATS if each.provider.name == provider and each.deferral is not None)
    return any(deferral_support(each.name, model).search != "none" for each in of_provider)
