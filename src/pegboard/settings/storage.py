"""Options for stored state: where it is kept and for how long, statistics of tools, and spending limits."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, SecretStr

from pegboard.model import Smoothing, ToolStatistics
from pegboard.settings.limit_settings import BudgetSettings, Usd
from pegboard.spend_limits import Limits, NanoUsd, nano_usd

Weight = Annotated[float, Field(gt=0, le=1)]
Days = Annotated[float, Field(ge=0, le=36_500)]
PinPolicy = Literal["allow", "warn", "quarantine"]
ScanPolicy = Literal["off", "warn", "quarantine"]
NewServerPolicy = Literal["approve", "quarantine"]


class StateSettings(BaseModel):
    """Where shared state is kept. ``url`` may contain variables and is secret."""

    model_config = ConfigDict(frozen=True, extra="forbid", hide_input_in_errors=True)

    url: SecretStr | None = None
    """`redis://…`, `rediss://…` or `postgresql://…`; None means a file in ``state_dir``."""
    prefix: Annotated[str, Field(pattern=r"^[a-z_][a-z0-9_]{0,62}$")] = "pegboard"
    """Prefix of all keys in Redis; the schema in PostgreSQL."""
    connections: int = Field(default=16, ge=1)
    timeout: float = Field(default=2.0, gt=0)
    """Seconds that the store may take to answer."""
    rest: float = Field(default=1.0, ge=0)
    """Seconds that a failed store is not called."""


class SmoothingSettings(BaseModel):
    """The weights λ of the newest call in the moving averages of a tool (EHRR eq. 8, table V)."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    success: Weight = 0.15
    variance: Weight = 0.15
    failure: Weight = 0.15
    latency: Weight = 0.15


class PriorSettings(BaseModel):
    """Statistics assumed for a tool that was never called; ``latency`` is in seconds. The paper gives no values."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    success: float = Field(default=0.9, ge=0, le=1)
    variance: float = Field(default=0.09, ge=0, le=1)
    failure: float = Field(default=0.05, ge=0, le=1)
    latency: float = Field(default=1.0, gt=0)


class StatisticsSettings(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")

    smoothing: SmoothingSettings = SmoothingSettings()
    prior: PriorSettings = PriorSettings()

    @property
    def weights(self) -> Smoothing:
        return Smoothing(**self.smoothing.model_dump())

    @property
    def start(self) -> ToolStatistics:
        return ToolStatistics(**self.prior.model_dump())


class RetentionSettings(BaseModel):
    """Days after which unused records are removed; 0 keeps them. Sessions have `session_ttl`. Pins are always kept,
    because a tool without a pin is approved as it is seen next."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    spend: Days = 400.0
    """Spending per session, and per key and day. The total of a key is kept, because removing it would reset its
    limit."""
    statistics: Days = 0.0
    lessons: Days = 90.0
    """Sums over the turns of conversations with models."""
    habits: Days = 90.0
    """What use taught about tools."""
    embeddings: Days = 90.0
    audit: Days = 365.0
    """Lines of the audit log. A log in files loses whole files, of which there is at least one a day."""
    activity: Days = 30.0
    """Decisions that the dashboard shows."""
    definitions: Days = 90.0
    """Cached tool definitions, which let servers start lazily."""


class UsageSettings(BaseModel):
    """Whether selection learns from the calls that requests lead to, for each key and board. What is learnt has
    weights of tools by embeddings of requests, no text; `pegboard state forget --habits` removes it."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    learn: bool = False
    control: float = Field(default=0.1, ge=0, le=1)
    """The share of keys whose selection stays untaught, to compare with."""
    half_life: float = Field(default=30.0, ge=1, le=3_650)
    """Days after which a call counts half."""

    @property
    def half_life_seconds(self) -> float:
        return self.half_life * 86_400.0


class SpendSettings(BaseModel):
    """Prices of calls in US dollars, by patterns on ``server/name`` of which the first match counts, and the limits
    of a ``session``, of all calls (``key``), and of all calls on one day (``day``, UTC)."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    prices: dict[str, Usd] = Field(default_factory=dict)
    declared: bool = False
    """Whether a tool that no pattern matches costs what its server declares in the tool's `_meta`."""
    session: Usd | None = None
    key: Usd | None = None
    day: Usd | None = None
    budgets: tuple[BudgetSettings, ...] = ()
    """Further limits, by caller, tenant and tool."""

    @property
    def limits(self) -> Limits:
        return Limits(session=_nano(self.session), key=_nano(self.key), day=_nano(self.day))


def _nano(usd: float | None) -> NanoUsd | None:
    return None if usd is None else nano_usd(usd)
