from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest

from pegboard.model import Mask, Outcome, Tool, ToolId
from pegboard_bench.simulate.calls import Calls, Chance, Happened
from pegboard_bench.simulate.chooser import AGENT, RESULT, Episode, Offer, Setting, play
from pegboard_bench.simulate.tasks import TASK, Limits, Task
from pegboard_bench.simulate.world import World, draw

TOOLS = tuple(Tool(id=ToolId(f"server{place // 4}", f"tool{place}"), description="Adds") for place in range(600))
WORLD = draw(TOOLS, 5)
SURE = replace(WORLD, crash=np.zeros_like(WORLD.crash), success=np.ones_like(WORLD.success))
BROKEN = replace(WORLD, crash=np.zeros_like(WORLD.crash), success=np.zeros_like(WORLD.success))
CRASHING = replace(WORLD, crash=np.ones_like(WORLD.crash))
TOKENS = 100


class Offers:
    """Offers these one after the other, whatever is asked, and remembers what it is told."""

    def __init__(self, *offers: Sequence[int], routed: bool = True) -> None:
        self._offers = list(offers)
        self._routed = routed
        self.observed: list[Outcome] = []
        self.left: list[Mask] = []

    def route(self, query: int, left: Mask) -> Offer:
        self.left.append(left.copy())
        places = np.array(self._offers.pop(0) if self._offers else (), np.intp)
        return Offer(places=places, ranking=places, routed=self._routed)

    def observe(self, place: int, happened: Happened) -> None:
        self.observed.append(happened.outcome)


def task(*goals: int, number: int = 0) -> Task:
    return Task(number=number, category="Office", goals=tuple(frozenset([goal]) for goal in goals), tokens=20)


def played(wanted: Task, policy: Offers, world: World = SURE, limits: Limits = TASK) -> Episode:
    setting = Setting(
        limits=limits, tokens=np.full(len(TOOLS), float(TOKENS)), price=world.price, seed=5, moment=wanted.number
    )
    return play(wanted, policy, Calls(world, Chance.of(world, 5, wanted.number)), setting)


def share_found(offered: int) -> float:
    """Of four hundred tasks with one right tool among these, those whose first call is of that tool."""
    places = list(range(offered))
    once = replace(TASK, calls=1, routes=1)
    return float(np.mean([played(task(0, number=each), Offers(places), limits=once).success for each in range(400)]))


@pytest.mark.parametrize(("offered", "expected"), [(3, 0.88), (30, 0.69), (527, 0.135)])
def test_the_more_tools_are_offered_the_less_often_the_right_one_is_found(offered: int, expected: float) -> None:
    assert share_found(offered) == pytest.approx(expected, abs=0.05)


def test_a_task_succeeds_when_every_goal_is_reached() -> None:
    found = played(task(7, 8), Offers([7, 8]))

    assert (found.success, found.reached, sorted(found.selected)) == (True, 2, [7, 8])
    assert (found.invalid_calls, found.invalid_routes, found.routes) == (0, 0, 1)
    assert found.paid == pytest.approx(SURE.price[[7, 8]].sum())


def test_where_nothing_persuades_the_agent_asks_again_for_something_else() -> None:
    policy = Offers([100], [200], [7])
    found = played(task(7, number=3), policy)

    assert found.success
    assert found.invalid_routes == 2
    assert not policy.left[1][100]
    assert not policy.left[2][[100, 200]].any()


def test_a_tool_that_fails_is_tried_once_more_and_then_given_up() -> None:
    found = played(task(7), Offers([7]), BROKEN)

    assert found.selected == [7, 7]
    assert (found.success, found.invalid_calls, found.invalid_routes) == (False, 2, found.routes)


def test_a_tool_whose_server_fails_is_not_tried_again() -> None:
    policy = Offers([7])
    found = played(task(7), policy, CRASHING)

    assert found.selected == [7]
    assert [outcome.failure for outcome in policy.observed] == ["server"]


def test_a_task_stops_at_each_of_its_limits() -> None:
    asked = played(task(7), Offers([100], [101], [102], [103]), limits=replace(TASK, routes=2))
    called = played(task(7, 8, 9), Offers([7, 8, 9]), limits=replace(TASK, calls=2))
    waited = played(task(7, 8, 9), Offers([7, 8, 9]), limits=replace(TASK, seconds=0.1))
    paid = played(task(7), Offers([7]), limits=replace(TASK, usd=SURE.price[7] / 2))

    assert asked.routes == 2
    assert len(called.selected) == 2
    assert (len(waited.selected), waited.success) == (1, False)
    assert (paid.selected, paid.paid) == ([], 0)


def test_every_prompt_is_counted_with_all_that_it_holds() -> None:
    """One to ask, one to call the first tool, and one with its result to call the second."""
    found = played(task(7, 8), Offers([7, 8]))
    first = AGENT + 20

    assert found.tokens == first + (first + 2 * TOKENS) + (first + 2 * TOKENS + RESULT)


def test_where_all_tools_are_in_the_prompt_nothing_is_routed() -> None:
    found = played(task(7), Offers([7, 100], routed=False))

    assert found.tokens == AGENT + 20 + 2 * TOKENS
    assert found.invalid_routes == 0


def test_the_same_task_is_played_the_same_way_again() -> None:
    first, again = (played(task(7, 300), Offers(range(50), range(250, 320)), WORLD) for _ in range(2))

    assert (first.selected, first.paid, first.seconds) == (again.selected, again.paid, again.seconds)
