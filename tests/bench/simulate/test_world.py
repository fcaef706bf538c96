from __future__ import annotations

from itertools import groupby

import numpy as np
import pytest

from pegboard.model import Tool, ToolId
from pegboard_bench.simulate.tiers import Tier, tier
from pegboard_bench.simulate.world import SEEDS, World, draw, frozen

TOOLS = tuple(
    Tool(id=ToolId(f"server{place // 5}", f"tool{place}"), description="Searches the web" if place % 3 == 0 else "Adds")
    for place in range(60)
)
VALUES = ("price", "latency", "success", "connection", "crash")


def values(world: World) -> dict[str, np.ndarray]:
    return {name: getattr(world, name) for name in VALUES}


def test_the_world_is_frozen() -> None:
    """Another fingerprint is another world: results of before cannot be compared with those of after."""
    assert draw(TOOLS, 1).fingerprint() == "6aaa3acd76713fc9"
    assert draw(TOOLS, 2, 0.5, copies=2).fingerprint() == "63a6806447467ca1"


def test_the_worlds_of_all_seeds_are_on_record_and_no_two_are_the_same() -> None:
    assert list(frozen()) == list(SEEDS)
    assert len(set(frozen().values())) == len(SEEDS)


def test_equal_seeds_give_equal_worlds_in_whatever_order_the_tools_come() -> None:
    forth, back = draw(TOOLS, 7), draw(TOOLS[::-1], 7)

    for name in ("price", "latency", "success"):
        np.testing.assert_allclose(getattr(forth, name), getattr(back, name)[::-1])


def test_without_heterogeneity_all_servers_are_alike_and_prices_are_those_of_the_tiers() -> None:
    world = draw(TOOLS, 3, heterogeneity=0.0)

    for name in ("latency", "success", "connection", "crash"):
        assert np.ptp(getattr(world, name)) == pytest.approx(0)
    by_tier = sorted((tier(tool).value, round(price, 12)) for tool, price in zip(TOOLS, world.price, strict=True))
    assert [len({price for _, price in each}) for _, each in groupby(by_tier, key=lambda pair: pair[0])] == [1, 1]


def test_what_is_the_mean_of_all_does_not_depend_on_how_different_they_are() -> None:
    alike, different = values(draw(TOOLS, 3, 0.0)), values(draw(TOOLS, 3, 1.0))

    for name in VALUES:
        assert alike[name].mean() == pytest.approx(different[name].mean())
        assert np.ptp(different[name]) > np.ptp(alike[name])


@pytest.mark.parametrize("seed", range(5))
def test_chances_are_chances_and_nothing_is_below_zero(seed: int) -> None:
    for name, found in values(draw(TOOLS, seed)).items():
        assert (found >= 0).all(), name
        assert name not in ("success", "crash") or (found <= 1).all()


def test_prices_are_drawn_as_the_paper_says() -> None:
    many = [draw(TOOLS, seed).price for seed in range(100)]
    low = np.concatenate([each[[tier(tool) is Tier.LOW for tool in TOOLS]] for each in many])
    high = np.concatenate([each[[tier(tool) is Tier.HIGH for tool in TOOLS]] for each in many])

    assert low.min() >= 0
    assert low.max() <= 0.0025
    assert low.mean() == pytest.approx(0.00125, rel=0.05)
    assert (high.mean(), high.std()) == pytest.approx((0.0225, 0.005), rel=0.05)


def test_a_copy_of_a_server_has_its_tools_and_values_of_its_own() -> None:
    one, two = draw(TOOLS, 3), draw(TOOLS, 3, copies=2)

    assert len(two.tools) == 2 * len(one.tools)
    assert two.tools[60] == ToolId("server0~1", "tool0")
    assert two.origin[60] == two.origin[0]
    assert two.crash[0] == pytest.approx(one.crash[0], abs=0.2)
    assert two.price[60] != pytest.approx(two.price[0])


def test_true_costs_are_those_of_equation_6() -> None:
    world = draw(TOOLS, 3)
    server = world.server_of[17]
    arrives = (1 - world.crash[server]) * world.success[17]
    expected = (0.05 + world.connection[server] + world.latency[17]) / max(1e-3, arrives) + 2 * world.price[17]

    assert world.cost(0.25, kappa=2)[17] == pytest.approx(0.25 * expected)
