"""Options for routing by price, time and failure (EHRR, table V), and for circuit breakers."""

from __future__ import annotations

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

from pegboard.circuit_breaker import RestPolicy

Weight = Annotated[float, Field(ge=0, le=1e6)]
Usd = Annotated[float, Field(ge=0, le=1e6)]


class EconomicsSettings(BaseModel):
    """How the profile `ehrr` weighs price, time and failure; the defaults are the paper's. Prices are in `[spend]`."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    servers: int = Field(default=5, ge=1)
    """k: number of servers that are offered a price."""
    base: Usd = 0.0025
    """p_bs, USD a call."""
    offset: Usd = 0.0225
    """p_ofs, USD a call."""
    reference: float = Field(default=1.0, gt=0)
    """L_0, seconds."""
    cap: Usd | None = None
    """B: the highest offer."""
    server_weight: Weight = 0.1
    """α_s, 1/s."""
    tool_weight: Weight = 0.25
    """α_t, 1/s."""
    seconds_per_usd: Weight = 1.0
    """κ."""
    floor: float = Field(default=1e-3, gt=0, le=1)
    """ε."""
    route_overhead: float = Field(default=0.0, ge=0)
    """L^route, seconds."""
    per_attempt: bool = False
    """Whether each retry is billed."""
    half_life: float = Field(default=600.0, ge=0)
    """Seconds without a call after which past failures count half; 0 never discounts them, as in the paper."""
    tiers: bool = False
    """Whether a tool without a price gets the price of its tier in the paper."""
    near_ties: float = Field(default=0.0, ge=0, le=1)
    """Under `hybrid`: a tool replaces another tool for the same job if its probability is lower by at most this share
    and it costs less than half; 0: never."""
    asks: dict[str, Usd] = Field(default_factory=dict)
    """What a call costs a server, by patterns on its name; the first match counts."""


class BreakerSettings(BaseModel):
    """When a failing server is not called for a while, under every profile; times are in seconds."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    failures: int = Field(default=5, ge=0)
    """Consecutive failures after which its tools are not offered; 0: never."""
    rest: float = Field(default=30.0, gt=0)
    """Time until it is tried again; doubled with each further failure."""
    longest: float = Field(default=600.0, gt=0)

    @property
    def policy(self) -> RestPolicy:
        return RestPolicy(failures=self.failures, rest=self.rest, longest=self.longest)
