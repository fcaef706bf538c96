"""Options of what routing makes of price, time and failure (seed 001, table V)."""

from __future__ import annotations

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

Weight = Annotated[float, Field(ge=0, le=1e6)]
Usd = Annotated[float, Field(ge=0, le=1e6)]


class EconomicsSettings(BaseModel):
    """How the profile `ehrr` weighs price, time and failure; the defaults are the paper's. Prices are in `[spend]`."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    servers: int = Field(default=5, ge=1)
    """k: servers that are offered a price."""
    base: Usd = 0.0025
    """p_bs, USD a call."""
    offset: Usd = 0.0225
    """p_ofs, USD a call."""
    reference: float = Field(default=1.0, gt=0)
    """L_0, seconds."""
    cap: Usd | None = None
    """B: no offer is higher."""
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
    """Seconds without a call in which half of what went wrong is forgotten; 0 forgets nothing, as the paper."""
    tiers: bool = False
    """Whether a tool without a price is taken to cost what the paper's tier for it does."""
    near_ties: float = Field(default=0.0, ge=0, le=1)
    """Under `hybrid`: a tool that is less likely than another of its job by no more than this share takes its place
    where it costs less than half; 0: never."""
    asks: dict[str, Usd] = Field(default_factory=dict)
    """What a call costs a server, by patterns on its name, of which the first that fits counts."""


class BreakerSettings(BaseModel):
    """When a server that fails is left alone, under every profile; times in seconds."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    failures: int = Field(default=5, ge=0)
    """In a row, after which its tools are not offered; 0: never."""
    rest: float = Field(default=30.0, gt=0)
    """Until it is tried again; twice as long each time that it fails again."""
    longest: float = Field(default=600.0, gt=0)
