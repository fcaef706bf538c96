"""What EHRR goes by, of the settings."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from pegboard.compose.parts import Parts
from pegboard.routing.economics import Economics, Parameters, PriceList, no_connections
from pegboard.settings import Settings


def economics(
    settings: Settings, parts: Parts, connections: Callable[[], Mapping[str, float]] = no_connections
) -> Economics:
    said = settings.economics
    return Economics(
        knowledge=parts.knowledge,
        parameters=Parameters(
            servers=said.servers,
            tools=None,  # the profile's k
            base=said.base,
            offset=said.offset,
            reference=said.reference,
            cap=said.cap,
            server_weight=said.server_weight,
            tool_weight=said.tool_weight,
            seconds_per_usd=said.seconds_per_usd,
            floor=said.floor,
            route_overhead=said.route_overhead,
            per_attempt=said.per_attempt,
            smoothing=settings.statistics.weights,
        ),
        prices=PriceList(patterns=settings.spend.prices, tiers=said.tiers),
        asks=said.asks,
        connections=connections,
        near_ties=said.near_ties,
    )
