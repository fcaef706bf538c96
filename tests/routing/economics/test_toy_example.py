"""The seed's worked example, tables I and II, digit by digit."""

from __future__ import annotations

import numpy as np
import pytest

from pegboard.routing.economics import (
    Estimates,
    Market,
    Parameters,
    accepts,
    candidates,
    chance,
    cosines,
    posted_price,
    route,
    server_cost,
    server_utility,
    shortlist,
    similarity,
    tool_cost,
    tool_utility,
)

SIMILARITY = np.array([0.75, 0.85])
OVERHEAD = np.array([0.3, 0.6])
CALL = np.array([0.9, 0.6])
FAILURE = np.array([0.05, 0.20])
CONSERVATIVE = np.array([0.709, 0.45])
ASKS = np.array([0.010, 0.050])
KNOWN = Estimates(success=CONSERVATIVE, variance=np.zeros(2), failure=FAILURE, latency=CALL)

TOOL_SIMILARITY = np.array([0.90, 0.75, 0.85])
LATENCY = np.array([1.0, 0.5, 0.8])
SUCCESS = np.array([0.70, 0.90, 0.80])
PRICE = np.array([0.030, 0.002, 0.020])
TOOLS = Estimates(success=SUCCESS, variance=np.zeros(3), failure=np.zeros(3), latency=LATENCY)


@pytest.mark.requirement("001.toy-example", "001.eq2", "001.eq3", "001.eq4", "001.eq5")
def test_table_one_is_reproduced_digit_by_digit() -> None:
    cost = server_cost(OVERHEAD, CALL, chance(FAILURE, CONSERVATIVE))
    assert [f"{each:.2f}" for each in cost] == ["1.78", "3.33"]
    assert [f"{each:.3f}" for each in server_utility(SIMILARITY, cost)] == ["0.572", "0.517"]
    posted = posted_price(SIMILARITY, cost)
    assert [f"{each:.4f}" for each in posted] == ["0.0249", "0.0351"]
    assert list(accepts(ASKS, posted)) == [True, False]


@pytest.mark.requirement("001.toy-example", "001.eq6", "001.eq7")
def test_table_two_is_reproduced_digit_by_digit() -> None:
    posted = posted_price(SIMILARITY, server_cost(OVERHEAD, CALL, chance(FAILURE, CONSERVATIVE)))
    assert list(posted[0] >= PRICE) == [False, True, True]
    cost = tool_cost(0.3, LATENCY, chance(0.05, SUCCESS), PRICE)
    assert [f"{each:.2f}" for each in cost[1:]] == ["0.94", "1.47"]
    assert [f"{each:.3f}" for each in tool_utility(TOOL_SIMILARITY, cost)[1:]] == ["0.516", "0.483"]


@pytest.mark.requirement("001.toy-example", "001.alg2")
def test_route_prefers_the_reliable_server_and_the_cheaper_tool_of_the_example() -> None:
    tools = np.array([0, 0, 0, 1])
    more = Estimates(**{name: np.append(getattr(TOOLS, name), 1.0) for name in Estimates.__slots__})
    market = Market(
        servers=KNOWN,
        tools=more,
        connection=OVERHEAD,
        asks=ASKS,
        prices=np.append(PRICE, 0.0),
        server_of=tools,
    )
    routed = route(SIMILARITY, np.append(TOOL_SIMILARITY, 1.0), market)
    assert list(routed.servers.shortlisted) == [0, 1]
    assert list(routed.accepted) == [True, False]
    assert list(routed.tools.tools) == [0, 1, 2]
    assert list(routed.tools.feasible) == [False, True, True]
    assert list(routed.chosen) == [1, 2]


@pytest.mark.requirement("001.defaults")
def test_the_defaults_are_table_five() -> None:
    p = Parameters()
    assert (p.base, p.offset, p.servers, p.tools) == (0.0025, 0.0225, 5, 3)
    assert (p.server_weight, p.tool_weight, p.seconds_per_usd, p.floor) == (0.1, 0.25, 1, 1e-3)
    s = p.smoothing
    assert (s.success, s.variance, s.latency, s.failure) == (0.15, 0.15, 0.15, 0.15)


def test_what_is_not_eligible_takes_no_place_in_either_layer() -> None:
    layer = shortlist(SIMILARITY, KNOWN, OVERHEAD, eligible=np.array([False, True]), parameters=Parameters(servers=1))
    assert list(layer.shortlisted) == [1]
    chosen = candidates(
        TOOL_SIMILARITY,
        TOOLS,
        PRICE,
        np.array([1, 1, 1]),
        servers=layer,
        accepted=np.array([False, True]),
        failure=FAILURE,
        eligible=np.array([False, False, True]),
    ).chosen
    assert list(chosen) == [2]


@pytest.mark.requirement("001.eq1")
def test_similarity_is_the_cosine_clipped_at_nothing_and_nothing_of_a_zero_vector() -> None:
    found = similarity(cosines([3.0, 4.0], [[6.0, 8.0], [4.0, -3.0], [-3.0, -4.0], [0.0, 0.0], [5.0, 0.0]]))

    np.testing.assert_allclose(found, [1.0, 0.0, 0.0, 0.0, 0.6], atol=1e-12)
    assert not similarity(cosines([0.0, 0.0], [[1.0, 0.0]])).any()
