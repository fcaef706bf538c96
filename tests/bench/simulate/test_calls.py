from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from pegboard.model import Tool, ToolId
from pegboard_bench.simulate.calls import TIMEOUT, Calls, Chance
from pegboard_bench.simulate.world import World, draw

TOOLS = tuple(Tool(id=ToolId(f"server{place // 4}", f"tool{place}"), description="Adds") for place in range(40))


def world(*, crash: float = 0.0, success: float = 1.0) -> World:
    drawn = draw(TOOLS, 5)
    return replace(drawn, crash=np.full_like(drawn.crash, crash), success=np.full_like(drawn.success, success))


def test_the_same_call_of_the_same_task_ends_the_same_whoever_makes_it() -> None:
    drawn = draw(TOOLS, 5)
    first, second = Calls(drawn, Chance.of(drawn, 5, 9)), Calls(drawn, Chance.of(drawn, 5, moment=9))
    second.call(30)

    assert [first.call(2) for _ in range(3)] == [second.call(2) for _ in range(3)]
    assert Calls(drawn, Chance.of(drawn, 5, 8)).call(2) != Calls(drawn, Chance.of(drawn, 5, moment=9)).call(2)


def test_only_the_first_call_on_a_server_waits_for_a_connection() -> None:
    drawn = world()
    calls = Calls(drawn, Chance.of(drawn, 5, 1))

    assert calls.call(0).waited == drawn.connection[0]
    assert calls.call(1).waited == 0
    assert calls.call(4).waited == drawn.connection[1]


def test_a_server_that_crashes_is_gone_until_the_task_ends() -> None:
    drawn = world(crash=1.0)
    calls = Calls(drawn, Chance.of(drawn, 5, 1))
    crashed, refused = calls.call(0), calls.call(1)

    assert (crashed.outcome.failure, crashed.outcome.latency_ms, crashed.price) == (
        "server",
        TIMEOUT * 1000,
        drawn.price[0],
    )
    assert (refused.outcome.failure, refused.outcome.latency_ms, refused.price) == ("server", 0, 0)
    assert Calls(world(), Chance.of(world(), 5, 1)).call(1).outcome.success


def test_a_call_that_fails_costs_what_one_that_succeeds_does() -> None:
    assert (
        Calls(world(success=0), Chance.of(world(success=0), 5, 1)).call(3).price
        == Calls(world(), Chance.of(world(), 5, moment=1)).call(3).price
        > 0
    )


def test_over_many_tasks_calls_succeed_crash_and_take_as_the_world_has_it() -> None:
    drawn = draw(TOOLS, 5)
    found = [Calls(drawn, Chance.of(drawn, 5, task)).call(6).outcome for task in range(4_000)]
    ended = [each.latency_ms / 1000 for each in found if each.failure != "server"]
    arrives = (1 - drawn.crash[1]) * drawn.success[6]

    assert np.mean([each.success for each in found]) == pytest.approx(arrives, abs=0.02)
    assert np.mean([each.failure == "server" for each in found]) == pytest.approx(drawn.crash[1], abs=0.01)
    assert np.mean(ended) == pytest.approx(drawn.latency[6], rel=0.02)
