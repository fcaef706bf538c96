"""Limits at both doors: which of the configured ones hold for a caller, and how often it may call."""

from __future__ import annotations

import hashlib
import logging
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Literal, TypeVar

from pegboard.errors import PegboardError
from pegboard.model import ToolId
from pegboard.protocols import Clock, Rates
from pegboard.rate_limits import ROUNDING, RateMeter
from pegboard.settings.limit_settings import BudgetSettings, LimitSettings, RateSettings
from pegboard.stores import MemoryRates

LOGGER = logging.getLogger(__name__)
L = TypeVar("L", bound=LimitSettings)


@dataclass(frozen=True, slots=True, kw_only=True)
class LimitedCaller:
    """Who is counted: the names of a caller and of its tenant, and the limits that its claims bring."""

    name: str = ""
    tenant: str = ""
    rates: tuple[RateSettings, ...] = ()
    budgets: tuple[BudgetSettings, ...] = ()


ANYONE = LimitedCaller()


class RateLimitReached(PegboardError):  # noqa: N818
    """Too many calls or requests; ``retry_after`` is in whole seconds."""

    code = "rate_limited"
    http_status = 429

    def __init__(self, limit: RateSettings, wait: float) -> None:
        self.retry_after = max(1, math.ceil(wait))
        whose = {"caller": "each caller", "tenant": "each tenant", "all": "all callers together"}[limit.by]
        super().__init__(
            f"The limit of {limit.calls} {limit.of} in {limit.seconds:g} seconds for {whose} is reached.",
            remedy=f"Try again in {self.retry_after} seconds.",
        )

    def payload(self) -> dict[str, object]:
        return super().payload() | {"retry_after_seconds": self.retry_after}


class RateLimiter:
    """Counts calls and requests in the store, which replicas share; by itself while the store does not answer."""

    def __init__(self, store: Rates, rates: Sequence[RateSettings], clock: Clock) -> None:
        self._store = store
        self._own = MemoryRates(clock)
        self._failing = False
        self.adopt(rates)

    def adopt(self, rates: Sequence[RateSettings]) -> None:
        """Use these limits from now on. One that is the same as before goes on counting."""
        self.limits = tuple(rates)

    async def admit_request(self, caller: LimitedCaller) -> None:
        """Raises RateLimitReached."""
        await self._admit("requests", caller, None)

    async def admit_call(self, caller: LimitedCaller, tool: ToolId) -> None:
        """Raises RateLimitReached."""
        await self._admit("calls", caller, tool)

    async def _admit(self, of: Literal["calls", "requests"], caller: LimitedCaller, tool: ToolId | None) -> None:
        if not self.limits and not caller.rates:
            return
        found = [each for each in applying((*self.limits, *caller.rates), caller, tool) if each.of == of]
        if not found:
            return
        wait = await self._taken([_meter(each, caller) for each in found])
        if wait > 0:
            raise RateLimitReached(_reached(found, wait), wait)

    async def _taken(self, meters: Sequence[RateMeter]) -> float:
        try:
            wait = await self._store.take(meters)
        except PegboardError as error:
            if not self._failing:
                LOGGER.warning("Rate limits are counted by this process alone: %s", error)
            self._failing = True
            return await self._own.take(meters)
        if self._failing:
            LOGGER.warning("Rate limits are counted in the store again.")
        self._failing = False
        return wait


def applying(limits: Iterable[L], caller: LimitedCaller, tool: ToolId | None) -> list[L]:
    """The limits that hold for a call of this caller, each once."""
    return [
        each
        for each in dict.fromkeys(limits)
        if _any(caller.name, each.callers)
        and _any(caller.tenant, each.tenants)
        and (tool is None or any(tool.fits(pattern) for pattern in each.tools))
    ]


def counted(limit: LimitSettings, caller: LimitedCaller) -> str:
    """A name for what a limit counts: the limit with the caller, the tenant, or nobody in particular."""
    whose = {"caller": caller.name, "tenant": caller.tenant, "all": ""}[limit.by]
    return hashlib.sha256(f"{limit.model_dump_json()}\0{whose}".encode("utf-8", "surrogatepass")).hexdigest()[:32]


def _reached(limits: Sequence[RateSettings], wait: float) -> RateSettings:
    """The limit that asks for such a wait: at most its interval, and that of the quickest limit is the likeliest."""
    able = [each for each in limits if each.seconds / each.calls >= wait - ROUNDING]
    return max(able or limits, key=lambda each: each.calls / each.seconds)


def _meter(limit: RateSettings, caller: LimitedCaller) -> RateMeter:
    return RateMeter(key=counted(limit, caller), calls=limit.calls, seconds=limit.seconds)


def _any(name: str, patterns: Iterable[str]) -> bool:
    return any(fnmatchcase(name, pattern) for pattern in patterns)
