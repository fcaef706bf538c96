"""What EHRR proves of its formulas, as properties; where a claim is not true as stated, the case that shows it."""

from __future__ import annotations

import math
from dataclasses import replace
from itertools import combinations, product

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from pegboard.routing.economics import (
    Array,
    Estimates,
    Market,
    Parameters,
    Route,
    accepted_of,
    accepts,
    best,
    candidates,
    chance,
    conservative_success,
    episode,
    observed,
    overhead,
    posted_price,
    route,
    server_cost,
    shortlist,
    time_to_success,
    tool_cost,
)
from pegboard.routing.economics.equations import moved

seconds = st.floats(0, 100)
usd = st.floats(0, 1)
shares = st.floats(0, 1)
odds = st.floats(0.01, 1)
weights = st.floats(0.01, 0.99)
steps = st.floats(0.001, 1)


def markets(servers: int, tools: int) -> st.SearchStrategy[tuple[Array, Array, Market]]:
    """Similarities of servers and tools, and all that is known of them."""

    def of(size: int, among: st.SearchStrategy[float]) -> st.SearchStrategy[Array]:
        return arrays(np.float64, size, elements=among)

    def estimates(size: int) -> st.SearchStrategy[Estimates]:
        return st.builds(
            Estimates, success=of(size, shares), variance=of(size, shares), failure=of(size, shares),
            latency=of(size, seconds),
        )  # fmt: skip

    market = st.builds(
        Market,
        servers=estimates(servers),
        tools=estimates(tools),
        connection=of(servers, seconds),
        asks=of(servers, st.floats(0, 0.2)),
        prices=of(tools, st.floats(0, 0.2)),
        server_of=arrays(np.intp, tools, elements=st.integers(0, servers - 1)),
    )
    return st.tuples(of(servers, shares), of(tools, shares), market)


@pytest.mark.requirement("001.proofs")
@given(attempt=seconds, odds=st.floats(0.05, 1))
def test_lemma_1_geometric_attempts_take_the_time_of_one_over_its_chance(attempt: float, odds: float) -> None:
    """E[LN] = L·Σ n·β·(1−β)^(n−1), summed until what is left is nothing."""
    tries = np.arange(1, 2_000)

    expected = attempt * float((tries * odds * (1 - odds) ** (tries - 1)).sum())

    assert float(time_to_success(attempt, odds)) == pytest.approx(expected, rel=1e-9)


@pytest.mark.requirement("001.proofs", "001.eq2")
@given(route=seconds, connection=seconds, call=seconds, failure=st.floats(0, 0.9), success=odds, spread=shares)
def test_corollary_1_a_servers_cost_is_the_time_to_success_of_its_attempts(
    route: float, connection: float, call: float, failure: float, success: float, spread: float
) -> None:
    safe = conservative_success(success, spread)
    assume((1 - failure) * float(safe) > 1e-3)  # up to the stabilisation by ε

    cost = float(server_cost(overhead(route, connection), call, chance(failure, safe)))

    assert cost == pytest.approx(
        (route + connection + call) / ((1 - failure) * (success - math.sqrt(spread))), rel=1e-9
    )


@pytest.mark.requirement("001.proofs", "001.eq6")
@given(fixed=st.floats(0.001, 10), latency=seconds, failure=st.floats(0, 0.5), success=st.floats(0.1, 0.9), price=usd,
       more=st.floats(0.001, 0.1))  # fmt: skip
@pytest.mark.parametrize("per_attempt", [False, True])
def test_proposition_1_a_tools_cost_rises_with_latency_price_and_failure_and_falls_with_success(
    fixed: float, latency: float, failure: float, success: float, price: float, more: float, per_attempt: bool
) -> None:
    def cost(latency: float, failure: float, success: float, price: float) -> float:
        return float(tool_cost(fixed, latency, chance(failure, success), price, per_attempt=per_attempt))

    known = cost(latency, failure, success, price)

    assert cost(latency + more, failure, success, price) > known
    assert cost(latency, failure + more, success, price) > known
    assert cost(latency, failure, success + more, price) < known
    assert cost(latency, failure, success, price + more) > known


@pytest.mark.requirement("001.proofs", "001.eq2")
@given(fixed=st.floats(0.001, 10), call=seconds, failure=st.floats(0, 0.5), success=st.floats(0.1, 0.9), more=steps)
def test_proposition_1_a_servers_cost_rises_and_falls_alike(
    fixed: float, call: float, failure: float, success: float, more: float
) -> None:
    more /= 10

    def cost(call: float, failure: float, success: float) -> float:
        return float(server_cost(fixed, call, chance(failure, success)))

    known = cost(call, failure, success)

    assert cost(call + more, failure, success) > known
    assert cost(call, failure + more, success) > known
    assert cost(call, failure, success + more) < known


@pytest.mark.requirement("001.proofs")
def test_proposition_1_is_not_strict_where_an_attempt_takes_no_time_or_the_floor_holds() -> None:
    """The seed says strictly for G, l ≥ 0: with G + l = 0 neither failure nor success changes the cost."""
    assert tool_cost(0, 0, chance(0.1, 0.5), 0) == tool_cost(0, 0, chance(0.9, 0.1), 0) == 0
    assert tool_cost(1, 1, chance(0.5, 0.001), 0) == tool_cost(1, 1, chance(0.9, 0.001), 0) == 2_000


@pytest.mark.requirement("001.proofs", "001.eq4")
@given(similarity=shares, cost=seconds, more=steps, reference=st.floats(0.1, 10))
def test_proposition_2_the_posted_price_rises_with_cost_ever_more_slowly(
    similarity: float, cost: float, more: float, reference: float
) -> None:
    prices = posted_price(similarity, np.array([cost, cost + more, cost + 2 * more]), reference=reference)
    first, second = np.diff(prices)

    assert first > 0
    assert second <= first + 1e-15
    slope = 0.0225 / (reference + cost)
    assert second <= first <= slope * more + 1e-15 <= 0.0225 / reference * more + 2e-15


@pytest.mark.requirement("001.proofs", "001.eq4")
@given(similarity=shares, cost=seconds, wrong=seconds)
def test_proposition_2_an_error_in_the_cost_moves_the_posted_price_by_at_most_its_share(
    similarity: float, cost: float, wrong: float
) -> None:
    apart = abs(float(posted_price(similarity, cost)) - float(posted_price(similarity, wrong)))

    assert apart <= 0.0225 * abs(cost - wrong) + 1e-15


def paid(accept: bool, selected: bool, posted: float, ask: float) -> float:
    """A server's realised utility in theorem 1's mechanism."""
    return posted - ask if accept and selected else 0.0


@pytest.mark.requirement("001.proofs", "001.eq5")
@given(ask=usd, posted=usd, selected=st.booleans(), cap=st.none() | st.floats(0.001, 1))
def test_theorem_1_and_proposition_3_to_accept_what_covers_the_cost_is_never_worse_and_never_a_loss(
    ask: float, posted: float, selected: bool, cap: float | None
) -> None:
    posted = posted if cap is None else min(posted, cap)
    truthful = paid(bool(accepts(ask, posted)), selected, posted, ask)

    assert truthful >= 0
    assert truthful >= max(paid(answer, selected, posted, ask) for answer in (True, False))


@pytest.mark.requirement("001.proofs")
def test_theorem_1_needs_the_payment_to_be_the_posted_price_and_not_the_tools() -> None:
    """Paid p ≤ τ, as the paper's evaluation sums it, a server that accepts as it should can lose."""
    posted, ask, price = 0.03, 0.02, 0.01

    assert accepts(ask, posted)
    assert price <= posted
    assert price - ask < 0 <= posted - ask


@pytest.mark.requirement("001.proofs")
def test_theorem_1_holds_for_one_price_a_server_that_gets_worse_is_offered_more() -> None:
    """σ² = r·(1 − r) in a steady state, so r = 0.5 gives r~ = ε: the offer grows sevenfold."""
    r = np.array([0.9, 0.5])

    posted = posted_price(0.8, server_cost(0.0, 1.0, chance(0.0, conservative_success(r, r * (1 - r)))))

    assert posted[0] == pytest.approx(0.0241, abs=1e-4)
    assert posted[1] == pytest.approx(0.1575, abs=1e-4)


@pytest.mark.requirement("001.proofs", "001.alg2")
@given(case=markets(6, 15), cap=st.none() | st.floats(0.001, 0.1))
def test_corollary_2_nothing_that_costs_more_than_the_posted_price_is_ever_offered(
    case: tuple[Array, Array, Market], cap: float | None
) -> None:
    of_servers, of_tools, market = case
    routed = route(of_servers, of_tools, market, parameters=Parameters(cap=cap))

    ceiling = routed.servers.posted[market.server_of[routed.chosen]]
    assert (market.prices[routed.chosen] <= ceiling).all()
    assert cap is None or (market.prices[routed.chosen] <= cap).all()


@pytest.mark.requirement("001.proofs", "001.eq9")
@given(utilities=arrays(np.float64, 7, elements=st.floats(0, 1)), among=arrays(np.bool_, 7), most=st.integers(0, 8))
def test_proposition_4_no_other_choice_of_at_most_n_is_worth_more_where_no_utility_is_negative(
    utilities: Array, among: np.ndarray, most: int
) -> None:
    places = best(utilities, among, most)
    worth = [
        utilities[list(some)].sum()
        for size in range(min(most, 7) + 1)
        for some in combinations(np.flatnonzero(among).tolist(), size)
    ]

    assert len(places) <= most
    assert utilities[places].sum() == pytest.approx(max(worth))


@pytest.mark.requirement("001.proofs", "001.eq9")
@given(utilities=arrays(np.float64, 7, elements=st.floats(-5, 1)), most=st.integers(0, 7))
def test_proposition_4_of_any_utilities_the_top_n_are_worth_most_among_choices_of_n(
    utilities: Array, most: int
) -> None:
    places = best(utilities, np.ones(7, np.bool_), most)

    assert len(places) == most
    assert utilities[places].sum() == pytest.approx(
        max(utilities[list(some)].sum() for some in combinations(range(7), most))
    )


@pytest.mark.requirement("001.proofs", "001.eq9")
def test_proposition_4_fails_as_stated_where_utilities_are_negative() -> None:
    """Eq. 9b says at most n: to leave out what is worth less than nothing is better than the top n."""
    utilities = np.array([0.5, -0.2, -0.3])

    top = best(utilities, np.ones(3, np.bool_), 3)

    assert utilities[top].sum() == pytest.approx(0.0)
    assert utilities[:1].sum() == 0.5


@pytest.mark.requirement("001.proofs", "001.eq9")
@given(utilities=arrays(np.float64, 30, elements=st.integers(0, 3).map(float)), most=st.none() | st.integers(0, 31))
def test_the_top_n_are_best_first_and_equal_ones_in_order(utilities: Array, most: int | None) -> None:
    expected = sorted(range(30), key=lambda place: (-utilities[place], place))[:most]

    assert best(utilities, np.ones(30, np.bool_), most).tolist() == expected


@pytest.mark.requirement("001.proofs")
@given(
    utilities=arrays(np.float64, 7, elements=st.floats(-1, 1)),
    errors=arrays(np.float64, 7, elements=st.floats(-0.3, 0.3)),
    most=st.integers(1, 7),
)
def test_proposition_5_utilities_wrong_by_delta_lose_at_most_two_n_delta(
    utilities: Array, errors: Array, most: int
) -> None:
    among = np.ones(7, np.bool_)
    right, taken = best(utilities, among, most), best(utilities + errors, among, most)

    assert utilities[right].sum() - utilities[taken].sum() <= 2 * most * np.abs(errors).max() + 1e-9


@pytest.mark.requirement("001.proofs", "001.alg2")
@given(case=markets(9, 30), k=st.integers(1, 10))
def test_proposition_6_only_the_tools_of_accepted_servers_are_evaluated(
    case: tuple[Array, Array, Market], k: int
) -> None:
    """m = Σ |T_i| over accepted servers, which k times the largest |T_i| bounds; m ≈ k·T̄ needs all to accept."""
    of_servers, of_tools, market = case
    routed = route(of_servers, of_tools, market, parameters=Parameters(servers=k))

    sizes = np.bincount(market.server_of, minlength=9)
    assert len(routed.tools.tools) == sizes[routed.accepted].sum() <= k * sizes.max()


@pytest.mark.requirement("001.proofs", "001.eq5")
@given(case=markets(9, 3), k=st.integers(1, 12))
def test_proposition_7_each_shortlisted_server_says_one_bit_and_no_other_is_asked(
    case: tuple[Array, Array, Market], k: int
) -> None:
    of_servers, _, market = case
    layer = shortlist(of_servers, market.servers, market.connection, parameters=Parameters(servers=k))

    assert len(set(layer.shortlisted.tolist())) == len(layer.shortlisted) == min(k, 9)
    unasked = np.setdiff1d(np.arange(9), layer.shortlisted)
    assert not accepted_of(layer, np.zeros(9))[unasked].any()


@pytest.mark.requirement("001.proofs", "001.alg1")
@given(rounds=st.integers(0, 6), tools=st.integers(0, 30), most=st.integers(1, 4))
def test_proposition_8_an_episode_is_shown_at_most_n_tools_a_route(rounds: int, tools: int, most: int) -> None:
    of_one = Estimates(success=np.ones(1), variance=np.zeros(1), failure=np.zeros(1), latency=np.ones(1))
    market = Market(
        servers=of_one,
        tools=Estimates(**{name: np.repeat(getattr(of_one, name), tools) for name in Estimates.__slots__}),
        connection=np.zeros(1), asks=np.zeros(1), prices=np.zeros(tools), server_of=np.zeros(tools, np.intp),
    )  # fmt: skip
    loop = episode("q", most=rounds + 1)
    asked, shown = next(loop), 0
    for _ in range(rounds):
        asked = loop.send(Route(subtask="s"))
        found = route(np.ones(1), np.ones(tools), market, parameters=Parameters(tools=most)).chosen.tolist()
        shown += len(found)
        asked = loop.send(found)

    assert shown == rounds * min(most, tools) <= rounds * most
    assert len(asked.context) == 1 + rounds  # type: ignore[union-attr]


@pytest.mark.requirement("001.proofs", "001.eq8")
@given(start=st.floats(0, 1), mean=st.sampled_from([0.1, 0.5, 0.9]), weight=weights, calls=st.integers(0, 8))
def test_lemma_2_a_moving_average_nears_the_mean_geometrically_and_keeps_its_share_of_the_variance(
    start: float, mean: float, weight: float, calls: int
) -> None:
    """Every sequence of outcomes of a coin, each with its probability: no chance is left in the test."""
    ends, likely = [], []
    for outcomes in product([0.0, 1.0], repeat=calls):
        value = start
        for outcome in outcomes:
            value = float(moved(value, outcome, weight))
        ends.append(value)
        likely.append(mean ** sum(outcomes) * (1 - mean) ** (calls - sum(outcomes)))
    average = float(np.dot(ends, likely))
    variance = float(np.dot((np.array(ends) - average) ** 2, likely))

    assert average == pytest.approx(mean + (1 - weight) ** calls * (start - mean), abs=1e-9)
    limit = weight / (2 - weight) * mean * (1 - mean)
    assert variance == pytest.approx(limit * (1 - (1 - weight) ** (2 * calls)), abs=1e-9)


@pytest.mark.requirement("001.proofs")
@given(weight=weights)
def test_corollary_3_the_average_is_as_sure_as_that_of_a_window(weight: float) -> None:
    """The fixed point of v ← (1 − λ)²·v + λ²·σ² is σ²/N with N = (2 − λ)/λ."""
    window = (2 - weight) / weight
    v = 1 / window

    assert (1 - weight) ** 2 * v + weight**2 == pytest.approx(v)


@pytest.mark.requirement("001.eq8")
def test_estimates_of_many_follow_one_call_of_each() -> None:
    known = Estimates(
        success=np.array([0.9, 0.5]), variance=np.array([0.09, 0.2]), failure=np.array([0.05, 0]),
        latency=np.array([1.0, 2.0]),
    )  # fmt: skip

    after = observed(known, success=[1, 0], failure=[0, 1], latency=[3.0, 2.0])

    np.testing.assert_allclose(after.success, [0.915, 0.425])
    np.testing.assert_allclose(after.variance, [0.85 * 0.09 + 0.15 * 0.01, 0.85 * 0.2 + 0.15 * 0.25])
    np.testing.assert_allclose(after.failure, [0.0425, 0.15])
    np.testing.assert_allclose(after.latency, [1.3, 2.0])


@pytest.mark.requirement("001.alg2")
@given(case=markets(7, 20))
def test_route_is_what_algorithm_2_says_line_by_line(case: tuple[Array, Array, Market]) -> None:
    of_servers, of_tools, market = case
    p = Parameters(servers=4, tools=3, route_overhead=0.2)
    routed = route(of_servers, of_tools, market, parameters=p)

    known, utility, posted = market.servers, [], []
    for i in range(7):
        safe = max(1e-3, known.success[i] - math.sqrt(known.variance[i]))
        cost = (0.2 + market.connection[i] + known.latency[i]) / max(1e-3, (1 - known.failure[i]) * safe)
        utility.append(of_servers[i] - 0.1 * cost)
        posted.append(0.0025 * of_servers[i] + 0.0225 * math.log(1 + cost))
    shortlisted = sorted(range(7), key=lambda i: -utility[i])[:4]
    found = []
    for j, i in enumerate(market.server_of.tolist()):
        if i in shortlisted and market.asks[i] <= posted[i] and market.prices[j] <= posted[i]:
            odds = max(1e-3, (1 - known.failure[i]) * market.tools.success[j])
            time = (0.2 + market.connection[i] + market.tools.latency[j]) / odds
            found.append((of_tools[j] - 0.25 * (time + market.prices[j]), -j))
    expected = sorted(found, reverse=True)[:3]

    assert routed.servers.utility == pytest.approx(utility)
    assert routed.servers.posted == pytest.approx(posted)
    evaluated = dict(zip(routed.tools.tools.tolist(), routed.tools.utility.tolist(), strict=True))
    assert [evaluated[j] for j in routed.chosen.tolist()] == pytest.approx([value for value, _ in expected])


@pytest.mark.requirement("001.alg2")
def test_no_candidates_come_back_where_no_server_accepts() -> None:
    known = Estimates(success=np.ones(2), variance=np.zeros(2), failure=np.zeros(2), latency=np.ones(2))
    layer = shortlist(np.ones(2), known)

    none = candidates(
        np.ones(2), known, np.zeros(2), np.arange(2), servers=layer, accepted=accepted_of(layer, np.full(2, 9.0)),
        failure=known.failure, parameters=replace(Parameters(), cap=0.01),
    )  # fmt: skip

    assert none.chosen.size == 0
