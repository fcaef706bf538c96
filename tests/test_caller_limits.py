"""Limits by caller, tenant and tool."""

from __future__ import annotations

import logging
from typing import Any

import pytest
from pydantic import ValidationError

from failing import Failing
from pegboard import Settings
from pegboard.caller_limits import ANYONE, LimitedCaller, RateLimiter, RateLimitReached
from pegboard.model import ToolId
from pegboard.settings.limit_settings import BudgetSettings, RateSettings
from pegboard.settings.reload_checks import weakened
from pegboard.stores import MemoryRates
from pegboard.testing import FakeClock

ANN, BOB = LimitedCaller(name="ann", tenant="acme"), LimitedCaller(name="bob", tenant="acme")
SEARCH, READ = ToolId("search", "deep"), ToolId("files", "read")


def limiter(clock: FakeClock, *rates: dict[str, Any]) -> RateLimiter:
    return RateLimiter(MemoryRates(clock), [RateSettings(**each) for each in rates], clock)


async def admitted(limits: RateLimiter, caller: LimitedCaller, tool: ToolId = READ, most: int = 50) -> int:
    """How many calls pass at once."""
    for count in range(most):
        try:
            await limits.admit_call(caller, tool)
        except RateLimitReached:
            return count
    return most


@pytest.mark.requirement("signing-in.rates")
@pytest.mark.parametrize(("by", "of_bob"), [("caller", 3), ("tenant", 0), ("all", 0)])
async def test_a_limit_counts_each_caller_each_tenant_or_all(clock: FakeClock, by: str, of_bob: int) -> None:
    limits = limiter(clock, {"calls": 3, "by": by})

    assert await admitted(limits, ANN) == 3
    assert await admitted(limits, BOB) == of_bob
    assert await admitted(limits, LimitedCaller(name="eve", tenant="other")) == (0 if by == "all" else 3)


async def test_a_limit_holds_for_its_tools_callers_and_tenants(clock: FakeClock) -> None:
    limits = limiter(clock, {"calls": 2, "tools": ["search/*"], "callers": ["a*"], "tenants": ["acme"]})

    assert await admitted(limits, ANN, READ) == 50
    assert await admitted(limits, BOB, SEARCH) == 50
    assert await admitted(limits, LimitedCaller(name="ann", tenant="other"), SEARCH) == 50
    assert await admitted(limits, ANN, SEARCH) == 2


async def test_who_waits_as_long_as_said_is_admitted(clock: FakeClock) -> None:
    limits = limiter(clock, {"calls": 2, "seconds": 10})
    await admitted(limits, ANN)

    with pytest.raises(RateLimitReached, match="The limit of 2 calls in 10 seconds for each caller") as caught:
        await limits.admit_call(ANN, READ)
    assert caught.value.payload()["retry_after_seconds"] == caught.value.retry_after == 5
    clock.advance(5)
    await limits.admit_call(ANN, READ)


async def test_limits_of_claims_hold_besides(clock: FakeClock) -> None:
    limits = limiter(clock, {"calls": 9})
    brief = LimitedCaller(name="ann", rates=(RateSettings(calls=4),))

    assert await admitted(limits, brief) == 4
    assert await admitted(limits, ANYONE) == 9


async def test_requests_and_calls_are_counted_apart(clock: FakeClock) -> None:
    limits = limiter(clock, {"calls": 1, "of": "requests"}, {"calls": 2})

    await limits.admit_request(ANN)
    with pytest.raises(RateLimitReached, match="The limit of 1 requests"):
        await limits.admit_request(ANN)
    assert await admitted(limits, ANN) == 2


@pytest.mark.requirement("signing-in.rates")
async def test_without_a_store_a_process_counts_by_itself(clock: FakeClock, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.WARNING)
    store = Failing(MemoryRates(clock))
    limits = RateLimiter(store, [RateSettings(calls=3)], clock)

    store.down = True
    assert await admitted(limits, ANN) == 3
    store.down = False
    assert await admitted(limits, ANN) == 3

    assert [record.message.partition(":")[0] for record in caplog.records] == [
        "Rate limits are counted by this process alone",
        "Rate limits are counted in the store again.",
    ]


def test_limits_that_make_no_sense_are_refused() -> None:
    with pytest.raises(ValidationError, match="needs day or total"):
        BudgetSettings(by="caller")
    with pytest.raises(ValidationError, match="tools cannot be chosen"):
        RateSettings(calls=1, of="requests", tools=("a",))


def test_a_reload_that_would_drop_all_limits_is_refused() -> None:
    before = Settings(rates=[{"calls": 1}], spend={"budgets": [{"day": 1}]})

    assert weakened(before, Settings()) == (
        "calls would not be counted any more ([[rates]]); no budget would be left ([[spend.budgets]])"
    )


async def test_of_several_limits_the_one_that_is_reached_is_named(clock: FakeClock) -> None:
    limits = limiter(clock, {"calls": 3, "seconds": 86_400}, {"calls": 2, "seconds": 1})
    assert await admitted(limits, ANN) == 2

    with pytest.raises(RateLimitReached, match="The limit of 2 calls in 1 seconds for each caller is reached"):
        await limits.admit_call(ANN, READ)
    clock.advance(1)
    await limits.admit_call(ANN, READ)
    with pytest.raises(RateLimitReached, match="The limit of 3 calls in 86400 seconds for each caller is reached"):
        await limits.admit_call(ANN, READ)
