"""Limits by caller, tenant and tool: how often something may happen, and what it may cost."""

from __future__ import annotations

from typing import Annotated, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

Usd = Annotated[float, Field(ge=0, le=1e6)]
CountedBy = Literal["caller", "tenant", "all"]


class LimitSettings(BaseModel):
    """Whom a limit counts: each caller for itself, each tenant, or all together; of callers and tenants whose names
    match a pattern. ``tools`` are patterns on ``server/name`` or the name alone."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    by: CountedBy = "caller"
    callers: tuple[str, ...] = ("*",)
    tenants: tuple[str, ...] = ("*",)
    tools: tuple[str, ...] = ("*",)


class RateSettings(LimitSettings):
    """At most ``calls`` in any ``seconds``, all of which may come at once: tool calls, or ``requests`` over HTTP to
    either gateway, which have no ``tools``."""

    calls: int = Field(ge=1)
    seconds: float = Field(default=60.0, gt=0, le=31 * 86_400)
    of: Literal["calls", "requests"] = "calls"

    @model_validator(mode="after")
    def _tools_of_calls(self) -> Self:
        if self.of == "requests" and self.tools != ("*",):
            raise ValueError('tools cannot be chosen for of = "requests"')
        return self


class ModelBudgetSettings(BaseModel):
    """US dollars that requests to ``models`` (patterns) may cost on one ``day`` (UTC), and in ``total``: of each key of
    the LLM gateway, of each tenant, or of all together. From the share ``warn`` of it on, log and answers say so."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    by: CountedBy = "caller"
    callers: tuple[str, ...] = ("*",)
    tenants: tuple[str, ...] = ("*",)
    models: tuple[str, ...] = ("*",)
    day: Usd | None = None
    total: Usd | None = None
    warn: float = Field(default=0.8, ge=0, le=1)

    @model_validator(mode="after")
    def _limits_something(self) -> Self:
        if self.day is None and self.total is None:
            raise ValueError("needs day or total")
        return self


class BudgetSettings(LimitSettings):
    """US dollars that calls may cost on one ``day`` (UTC), and in ``total``."""

    day: Usd | None = None
    total: Usd | None = None

    @model_validator(mode="after")
    def _limits_something(self) -> Self:
        if self.day is None and self.total is None:
            raise ValueError("needs day or total")
        return self
