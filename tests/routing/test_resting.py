"""Circuit breakers: when a server is left alone, when it is tried again, and what its tools are meanwhile."""

from __future__ import annotations

from typing import Any

import pytest

from pegboard import Catalog, ToolId
from pegboard.board import Board
from pegboard.model import Outcome, Server, ServerName
from pegboard.routing import PROFILES
from pegboard.routing.resting import Resting
from pegboard.seams import Filter
from pegboard.stores import MemoryEvents
from pegboard.testing import FakeClock, FakeEncoder, fake_tool

NOW = ToolId("clock", "now")


@pytest.fixture
def resting(clock: FakeClock) -> Resting:
    return Resting(clock, failures=3, rest=10, longest=35)


def call(failure: Any = None, *, ms: float = 100.0) -> Outcome:
    return Outcome(tool=NOW, success=failure is None, latency_ms=ms, failure=failure)


def fail(resting: Resting, times: int, **fields: Any) -> None:
    for _ in range(times):
        resting.observe(call("server", **fields))


@pytest.mark.requirement("001.breakers")
def test_a_server_that_fails_so_many_times_in_a_row_is_left_alone(resting: Resting) -> None:
    fail(resting, 2)
    assert resting.servers() == frozenset()
    fail(resting, 1)
    assert resting.servers() == {"clock"}


@pytest.mark.parametrize("answer", [None, "tool"])
def test_an_answer_of_any_kind_in_between_begins_the_count_anew(resting: Resting, answer: Any) -> None:
    fail(resting, 2)
    resting.observe(call(answer))
    fail(resting, 2)

    assert resting.servers() == frozenset()


def test_the_callers_mistakes_neither_open_a_circuit_nor_close_it(resting: Resting) -> None:
    for _ in range(9):
        resting.observe(call("caller"))
    assert resting.servers() == frozenset()
    fail(resting, 3)
    resting.observe(call("caller"))
    assert resting.servers() == {"clock"}


@pytest.mark.requirement("001.breakers")
def test_after_its_rest_a_server_is_tried_and_rests_twice_as_long_if_it_fails_up_to_a_bound(
    resting: Resting, clock: FakeClock
) -> None:
    fail(resting, 3)
    for rest in (10, 20, 35, 35):
        clock.advance(rest - 1)
        assert resting.servers() == {"clock"}
        clock.advance(1)
        assert resting.servers() == frozenset(), "half open"
        fail(resting, 1, ms=0)


@pytest.mark.requirement("001.breakers")
def test_a_probe_that_is_answered_closes_the_circuit_for_good(resting: Resting, clock: FakeClock) -> None:
    fail(resting, 3)
    clock.advance(10)
    resting.observe(call())
    fail(resting, 2)

    assert resting.servers() == frozenset()


def test_a_call_by_name_that_is_answered_ends_the_rest(resting: Resting) -> None:
    fail(resting, 3)
    resting.observe(call())

    assert resting.servers() == frozenset()


def test_a_call_that_began_before_or_during_the_rest_and_fails_after_it_is_no_probe(
    resting: Resting, clock: FakeClock
) -> None:
    fail(resting, 3)
    clock.advance(11)
    fail(resting, 1, ms=5_000)

    assert resting.servers() == frozenset()


def test_with_no_number_of_failures_no_server_is_ever_left_alone(clock: FakeClock) -> None:
    never = Resting(clock, failures=0)
    fail(never, 100)

    assert never.servers() == frozenset()


@pytest.mark.requirement("001.breakers")
@pytest.mark.parametrize("profile", PROFILES)
async def test_the_tools_of_a_server_that_rests_are_not_offered_but_stay_callable_under_every_profile(
    profile: str, resting: Resting, clock: FakeClock, encoder: FakeEncoder
) -> None:
    board = board_of(profile, resting, clock, encoder)
    before = await board.route("the time now")
    assert NOW in before.active
    fail(resting, 3)

    decision = await board.route("the time now")

    assert NOW not in decision.active
    assert NOW in decision.reachable
    assert decision.left_out[NOW] == "its server failed and is left alone for a moment"
    assert NOW not in (await board.choices("the time now")).active
    clock.advance(10)
    assert NOW in (await board.route("the time now")).active


async def test_where_every_tool_is_on_a_server_that_rests_all_are_offered(
    resting: Resting, clock: FakeClock, encoder: FakeEncoder
) -> None:
    board = board_of("hybrid", resting, clock, encoder)
    fail(resting, 3)

    decision = await board.route("the time now", Filter(servers=frozenset({"clock"})))

    assert NOW in decision.active
    assert decision.left_out == {}


def board_of(profile: str, resting: Resting, clock: FakeClock, encoder: FakeEncoder) -> Board:
    groups = {"clock": ["now", "later"], "files": ["read", "write"]}
    descriptions = {"now": "the time now", "later": "the time later"}
    catalog = Catalog.build(
        (
            Server(name=ServerName(server)),
            [fake_tool(name, descriptions.get(name, f"{name} a file"), server=server) for name in names],
        )
        for server, names in groups.items()
    )
    return Board(
        catalog, PROFILES[profile], documents=encoder, queries=encoder, events=MemoryEvents(), clock=clock,
        resting=resting,
    )  # fmt: skip
