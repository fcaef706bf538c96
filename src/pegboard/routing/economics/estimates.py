"""The estimates of one catalog's servers and tools as arrays, updated with every call."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from typing import Literal

import numpy as np

from pegboard.catalog import Catalog
from pegboard.model import ToolId, ToolStatistics
from pegboard.routing.economics.equations import Array, Estimates, Parameters, Places
from pegboard.routing.economics.knowledge import Knowledge, StatisticsEntry, faded
from pegboard.routing.economics.tool_prices import PriceList, stated_usd

AskSource = Literal["callback", "_meta", "config", "observed"]
Accept = Callable[[str, float], bool | None]
"""Whether a server accepts τ_i (USD a call): its one-bit answer, or None if it does not say."""


def no_connections() -> Mapping[str, float]:
    return {}


@dataclass(frozen=True, slots=True, kw_only=True)
class Economics:
    """The inputs of EHRR for one process.

    ``asks`` are c_i by patterns on the server's name; ``accept`` asks the server itself. ``connections`` returns L^conn
    in seconds of the servers without an open connection. ``near_ties`` is for `NearTies`: the share by which a tool's
    probability may be below the best one's; 0 turns it off.
    """

    knowledge: Knowledge
    parameters: Parameters = field(default_factory=Parameters)
    prices: PriceList = field(default_factory=PriceList)
    asks: Mapping[str, float] = field(default_factory=dict)
    accept: Accept | None = None
    connections: Callable[[], Mapping[str, float]] = no_connections
    near_ties: float = 0.0


class EstimateArrays:
    """The arrays of a catalog with m tools on s servers (those with tools), in catalog order."""

    def __init__(self, catalog: Catalog, economics: Economics) -> None:
        self._economics = economics
        knowledge = economics.knowledge
        self.servers = tuple(dict.fromkeys(tool.server for tool in catalog.tools))
        places = {name: place for place, name in enumerate(self.servers)}
        self.server_of: Places = np.array([places[tool.server] for tool in catalog.tools], np.intp)
        self.first_of: Places = np.unique(self.server_of, return_index=True)[1]
        self.price_list = tuple(economics.prices.of(tool) for tool in catalog.tools)
        self.prices: Array = np.array([price.usd for price in self.price_list], np.float64)
        self._of_tools = _EstimateTable(catalog.position, knowledge.prior)
        self._of_servers = _EstimateTable({ToolId(name, ""): place for name, place in places.items()}, knowledge.prior)
        self._places = places
        self._version = 0
        self._typical: Array = np.array(
            [np.median(self.prices[self.server_of == place]) for place in range(len(self.servers))], np.float64
        )
        self._stated = self._stated_asks(catalog)
        self._observed: Array | None = None

    def estimates(self) -> tuple[Estimates, Estimates]:
        """The estimates of servers, shape (s,), and tools, shape (m,), as of now, after fading."""
        knowledge = self._economics.knowledge
        if self._version != knowledge.version:
            for key, known in knowledge.changed_since(self._version):
                self._of_servers.put(key, known)
                self._of_tools.put(key, known)
            self._version = knowledge.version
            self._observed = None
        ledgers = (self._of_servers, self._of_tools)
        servers, tools = (
            faded(each.estimates, each.targets, knowledge.now - each.at, half_life=knowledge.half_life)
            for each in ledgers
        )
        return servers, tools

    def asks(self) -> tuple[Array, tuple[AskSource, ...]]:
        """c_i, USD a call, shape (s,), and the source of each: `_meta`, the configuration, or observed prices.

        An observed price is the mean price of the calls so far, or the median price of the server's tools before any.
        """
        if self._observed is None:
            size = len(self.servers)
            calls = np.bincount(self.server_of, self._of_tools.calls, size)
            paid = np.bincount(self.server_of, self._of_tools.calls * self.prices, size)
            self._observed = np.where(calls > 0, paid / np.maximum(calls, 1), self._typical)
        usd, sources = self._stated
        return np.where(np.isnan(usd), self._observed, usd), sources

    def connections(self) -> Array:
        """L^conn of each server, seconds, shape (s,); 0 if a connection is open."""
        seconds = np.zeros(len(self.servers))
        for name, value in self._economics.connections().items():
            if name in self._places:
                seconds[self._places[name]] = value
        return seconds

    def _stated_asks(self, catalog: Catalog) -> tuple[Array, tuple[AskSource, ...]]:
        """The asks stated in the `_meta` of a server's tools or in the configuration; NaN for neither."""
        found: dict[str, tuple[float, AskSource]] = {}
        for tool in catalog.tools:
            usd = stated_usd(tool, "ask_usd")
            if usd is not None:
                found.setdefault(tool.server, (usd, "_meta"))
        for name in self.servers:
            configured = [usd for pattern, usd in self._economics.asks.items() if fnmatchcase(name, pattern)]
            if configured:
                found.setdefault(name, (configured[0], "config"))
        each = [found.get(name, (float("nan"), "observed")) for name in self.servers]
        return np.array([usd for usd, _ in each], np.float64), tuple(source for _, source in each)


class _EstimateTable:
    """Estimates, their fading targets, number of calls, and the time of the last call, by place."""

    def __init__(self, places: Mapping[ToolId, int], prior: ToolStatistics) -> None:
        size = len(places)
        self._places = places
        self.calls: Array = np.zeros(size)
        self.at: Array = np.zeros(size)
        self.estimates, self.targets = _filled(prior, size), _filled(prior, size)

    def put(self, key: ToolId, known: StatisticsEntry) -> None:
        place = self._places.get(key)
        if place is not None:
            self.calls[place] = known.statistics.calls
            self.at[place] = known.at
            _set(self.estimates, place, known.statistics)
            _set(self.targets, place, known.target)


def _filled(each: ToolStatistics, size: int) -> Estimates:
    return Estimates(
        success=np.full(size, each.success),
        variance=np.full(size, each.variance),
        failure=np.full(size, each.failure),
        latency=np.full(size, each.latency),
    )


def _set(estimates: Estimates, place: int, one: ToolStatistics) -> None:
    estimates.success[place] = one.success
    estimates.variance[place] = one.variance
    estimates.failure[place] = one.failure
    estimates.latency[place] = one.latency
