from __future__ import annotations

from dataclasses import astuple, replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pegboard.averages import PRIOR, SMOOTHING, after, after_all, ema
from pegboard.model import Outcome, Smoothing, ToolId, ToolStatistics

TOOL = ToolId("git", "log")
weights = st.floats(0.01, 0.99)
shares = st.floats(0, 1)
smoothings = st.builds(Smoothing, success=weights, variance=weights, failure=weights, latency=weights)
priors = st.builds(
    ToolStatistics, success=shares, variance=shares, failure=shares, latency=st.floats(0, 100), calls=st.integers(0, 9)
)
kinds = st.sampled_from([(True, None), (False, None), (False, "tool"), (False, "server"), (False, "caller")])
outcomes = st.builds(
    lambda kind, ms: Outcome(tool=TOOL, success=kind[0], failure=kind[1], latency_ms=ms), kinds, st.floats(0, 1e5)
)


@pytest.mark.requirement("001.eq8")
@given(prior=priors, outcome=outcomes, smoothing=smoothings)
def test_one_update_is_equation_8(prior: ToolStatistics, outcome: Outcome, smoothing: Smoothing) -> None:
    y, fail, latency = float(outcome.success), float(outcome.failure == "server"), outcome.latency_ms / 1000
    old = np.array([prior.success, prior.variance, prior.failure, prior.latency])
    observed = np.array([y, (y - prior.success) ** 2, fail, latency])
    weight = np.array([smoothing.success, smoothing.variance, smoothing.failure, smoothing.latency])
    expected = old if outcome.failure == "caller" else (1 - weight) * old + weight * observed

    new = after(prior, outcome, smoothing)

    assert [new.success, new.variance, new.failure, new.latency] == pytest.approx(expected, abs=1e-9)


@pytest.mark.requirement("001.eq8")
@given(prior=priors, many=st.lists(outcomes, max_size=30), smoothing=smoothings)
def test_shares_stay_shares_and_counts_count(prior: ToolStatistics, many: list[Outcome], smoothing: Smoothing) -> None:
    known = after_all(prior, many, smoothing)

    assert all(-1e-12 <= share <= 1 + 1e-12 for share in (known.success, known.variance, known.failure))
    assert known.calls == prior.calls + len(many)
    assert known.successes == prior.successes + sum(each.success for each in many)


@given(old=st.floats(-1e6, 1e6), observed=st.floats(-1e6, 1e6), weight=weights)
def test_an_average_lies_between_what_it_was_and_what_was_seen(old: float, observed: float, weight: float) -> None:
    low, high = sorted((old, observed))

    assert low - 1e-6 <= ema(old, observed, weight) <= high + 1e-6


@pytest.mark.requirement("001.eq8")
@given(many=st.lists(outcomes, max_size=20), at=st.integers(0, 20))
def test_batches_give_what_one_call_after_the_other_gives(many: list[Outcome], at: int) -> None:
    whole = after_all(PRIOR, many, SMOOTHING)

    assert after_all(after_all(PRIOR, many[:at], SMOOTHING), many[at:], SMOOTHING) == whole


@pytest.mark.requirement("001.eq8")
def test_a_steady_chance_of_success_has_the_variance_of_a_coin() -> None:
    """σ² goes to r·(1 − r), up to the wobble of r itself."""
    coin = np.random.default_rng(0).random(20_000) < 0.7
    slow = Smoothing(success=0.001, variance=0.001)

    known = after_all(PRIOR, [Outcome(tool=TOOL, success=bool(side), latency_ms=1) for side in coin], slow)

    assert known.success == pytest.approx(0.7, abs=0.03)
    assert known.variance == pytest.approx(0.21, abs=0.02)


@pytest.mark.parametrize("failure", [None, "tool"])
def test_only_a_servers_failure_raises_the_chance_that_it_fails(failure: None) -> None:
    wrong = Outcome(tool=TOOL, success=False, failure=failure, latency_ms=1)

    known = after(PRIOR, wrong, SMOOTHING)

    assert known.success < PRIOR.success
    assert known.failure < PRIOR.failure


@pytest.mark.requirement("001.verdict")
@given(prior=priors, many=st.lists(outcomes, max_size=9), smoothing=smoothings, ms=st.floats(0, 1e5))
def test_a_verdict_makes_the_last_success_a_failure_in_every_average_but_time(
    prior: ToolStatistics, many: list[Outcome], smoothing: Smoothing, ms: float
) -> None:
    good = Outcome(tool=TOOL, success=True, latency_ms=ms)
    useless = Outcome(tool=TOOL, success=False, failure="verdict", latency_ms=0)
    known = after_all(prior, many, smoothing)

    revised = astuple(after_all(known, [good, useless], smoothing))
    failed = astuple(after(known, replace(good, success=False, failure="tool"), smoothing))

    assert revised == pytest.approx(failed, abs=1e-9)


@given(many=st.lists(st.one_of(outcomes, st.just(Outcome(tool=TOOL, success=False, failure="verdict", latency_ms=0)))))
def test_verdicts_that_come_late_or_too_often_leave_shares_that_are_shares(many: list[Outcome]) -> None:
    known = after_all(PRIOR, many, SMOOTHING)

    assert all(0 <= share <= 1 + 1e-12 for share in (known.success, known.variance, known.failure))
    assert known.successes >= 0


def test_the_callers_own_mistake_says_nothing_of_the_tool() -> None:
    wrong = Outcome(tool=TOOL, success=False, failure="caller", latency_ms=9_999)

    assert after(PRIOR, wrong, SMOOTHING) == ToolStatistics(calls=1)
