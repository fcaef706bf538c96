"""The world that policies are tried in, drawn from a seed. Policies see posted prices and outcomes of their own calls.

Frozen on 2026-11-22, before any policy had run: `frozen.json` has the fingerprints of the worlds on LiveMCPBench's 527
tools, each of h = 1 and three copies. All other worlds follow from the same draws.

Each value is drawn from Python's generator seeded with the text `SEED SERVER` or `SEED SERVER TOOL`, so that neither
the order of the catalog nor the other tools matter. z is a standard normal number.

| value | of a | drawn as | source |
|---|---|---|---|
| connection time, s | server | 0.45·exp(0.6·z) | 0.3 and 0.6 s in EHRR's example (section III A), with a tail |
| usual latency, s | server | 0.8·exp(0.7·z) | 0.6 and 0.9 s there; a lognormal tail, as times of services have |
| reliability | server | Beta(4, 0.8): mean 0.83 | 0.7 to 0.9 in table II; most servers good, some useless |
| crash of a call | server | Beta(0.5, 9.5): mean 0.05 | 0.05 and 0.20 in the example; most servers hardly ever |
| latency, s | tool | the server's·exp(0.5·z) | 0.5 to 1.0 s in table II |
| success of a call | tool | Beta around the server's reliability, as if 12 calls had been seen | ours |
| price, USD | tool | low tier U(0, 0.0025), high tier N(0.0225, 0.005²), at least 0 | EHRR section V, as it is |

``heterogeneity`` h draws each value towards the mean of its kind, m + h·(value − m), over servers, over tools, and for
prices over the tools of a tier. So a world of h = 0 has servers that are all alike, one of h = 1 has them as drawn, and
what is the mean of all is the same in both. With ``copies`` of a server, each copy draws for itself.

Within a run nothing drifts: what a policy learns stays true.
"""

from __future__ import annotations

import hashlib
import json
import math
import random
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from importlib.resources import files

import numpy as np
from numpy.typing import NDArray

from pegboard.model import Tool, ToolId
from pegboard_bench.simulate.tiers import Tier, tier

CONNECTION, CONNECTION_SPREAD = 0.45, 0.6
LATENCY, SERVER_SPREAD, TOOL_SPREAD = 0.8, 0.7, 0.5
RELIABILITY = (4.0, 0.8)
CRASH = (0.5, 9.5)
CALLS_SEEN = 12
LEAST_SURE, MOST_SURE = 0.02, 0.98
LOW_MOST = 0.0025
HIGH_MEAN, HIGH_DEVIATION = 0.0225, 0.005
ROUTING = 0.05
"""L_route, seconds: what asking a router takes, the same for all of them."""
DIGITS = 9
"""Of each value in a fingerprint: the last bits of exp are the machine's."""
COPY = "~"

SEEDS = range(20)
MOST_COPIES = 3

Numbers = NDArray[np.float64]
Places = NDArray[np.intp]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class World:
    """Tools in the order of ``tools``, n of them, on s servers in the order of ``servers``.

    ``server_of``, shape (n,), is the place of a tool's server; ``origin``, shape (n,), of the tool it copies in the
    catalog. ``price`` (USD), ``latency`` (seconds) and ``success`` (of a call that no crash ends) have shape (n,),
    ``connection`` (seconds) and ``crash`` (the chance that a call ends in one) shape (s,).
    """

    servers: tuple[str, ...]
    tools: tuple[ToolId, ...]
    server_of: Places
    origin: Places
    price: Numbers
    latency: Numbers
    success: Numbers
    connection: Numbers
    crash: Numbers

    def fingerprint(self) -> str:
        """The same for the same world on any machine."""
        digest = hashlib.sha256("\n".join(map(str, self.tools)).encode())
        for values in (self.price, self.latency, self.success, self.connection, self.crash):
            digest.update(" ".join(f"{value:.{DIGITS}f}" for value in values).encode())
        return digest.hexdigest()[:16]

    def cost(self, alpha: float, kappa: float = 1.0) -> Numbers:
        """α_t·C^t of each tool by its true values (EHRR eq. 6), shape (n,)."""
        overhead = ROUTING + self.connection[self.server_of]
        arrives = (1 - self.crash[self.server_of]) * self.success
        return np.asarray(alpha * ((overhead + self.latency) / np.maximum(1e-3, arrives) + kappa * self.price))


def frozen() -> dict[int, str]:
    """Seed to fingerprint, of worlds with all the draws in them."""
    found = json.loads((files("pegboard_bench.simulate") / "frozen.json").read_text("utf-8"))
    return {int(seed): fingerprint for seed, fingerprint in found.items()}


def thawed(tools: Sequence[Tool]) -> dict[int, str]:
    """What `frozen` should say of the worlds over these tools."""
    return {seed: draw(tools, seed, copies=MOST_COPIES).fingerprint() for seed in SEEDS}


def draw(tools: Sequence[Tool], seed: int, heterogeneity: float = 1.0, copies: int = 1) -> World:
    """The world of a seed over the tools of a catalog, ``heterogeneity`` from 0 to 1, ``copies`` of each server."""
    named = [
        (place, tool, f"{tool.server}{COPY}{copy}" if copy else tool.server)
        for copy in range(copies)
        for place, tool in enumerate(tools)
    ]
    servers = tuple(dict.fromkeys(server for _, _, server in named))
    places = {server: place for place, server in enumerate(servers)}
    drawn = {server: _server(seed, server) for server in servers}
    each = [_tool(seed, server, tool, drawn[server]) for _, tool, server in named]
    tiers = {tool.id: tier(tool) for tool in tools}
    narrow = _narrowing(heterogeneity)
    return World(
        servers=servers,
        tools=tuple(ToolId(server, tool.name) for _, tool, server in named),
        server_of=np.array([places[server] for _, _, server in named], np.intp),
        origin=np.array([place for place, _, _ in named], np.intp),
        price=narrow(
            [tool.price[tiers[original.id]] for tool, (_, original, _) in zip(each, named, strict=True)],
            [tiers[original.id] for _, original, _ in named],
        ),
        latency=narrow([tool.latency for tool in each], None),
        success=narrow([tool.success for tool in each], None),
        connection=narrow([drawn[server].connection for server in servers], None),
        crash=narrow([drawn[server].crash for server in servers], None),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Server:
    connection: float
    latency: float
    reliability: float
    crash: float


@dataclass(frozen=True, slots=True, kw_only=True)
class _Tool:
    latency: float
    success: float
    price: Mapping[Tier, float]


def _server(seed: int, server: str) -> _Server:
    drawn = random.Random(f"{seed} {server}")  # noqa: S311
    return _Server(
        connection=CONNECTION * math.exp(CONNECTION_SPREAD * drawn.gauss(0, 1)),
        latency=LATENCY * math.exp(SERVER_SPREAD * drawn.gauss(0, 1)),
        reliability=min(max(drawn.betavariate(*RELIABILITY), LEAST_SURE), MOST_SURE),
        crash=drawn.betavariate(*CRASH),
    )


def _tool(seed: int, server: str, tool: Tool, of: _Server) -> _Tool:
    drawn = random.Random(f"{seed} {server} {tool.name}")  # noqa: S311
    return _Tool(
        latency=of.latency * math.exp(TOOL_SPREAD * drawn.gauss(0, 1)),
        success=drawn.betavariate(CALLS_SEEN * of.reliability, CALLS_SEEN * (1 - of.reliability)),
        price={
            Tier.LOW: drawn.uniform(0, LOW_MOST),
            Tier.HIGH: max(0.0, drawn.gauss(HIGH_MEAN, HIGH_DEVIATION)),
        },
    )


def _narrowing(heterogeneity: float) -> Callable[[Sequence[float], Sequence[Hashable] | None], Numbers]:
    """Values drawn towards the mean of their kind."""

    def narrow(values: Sequence[float], kinds: Sequence[Hashable] | None) -> Numbers:
        given = np.asarray(values, np.float64)
        of = list(kinds or [None] * len(given))
        means = {kind: given[[each == kind for each in of]].mean() for kind in set(of)}
        mean = np.array([means[kind] for kind in of])
        return np.asarray(mean + heterogeneity * (given - mean))

    return narrow
