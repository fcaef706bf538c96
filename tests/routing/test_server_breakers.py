"""Circuit breakers: when a server is left alone, when it is tried again, and what its tools are meanwhile."""

from __future__ import annotations

from typing import Any

import pytest

from pegboard import Catalog, ToolId
from pegboard.circuit_breaker import RestPolicy
from pegboard.model import Outcome, Server, ServerName
from pegboard.protocols import Filter
from pegboard.routing import PROFILES
from pegboard.routing.server_breakers import ServerBreakers
from pegboard.routing_board import RoutingBoard
from pegboard.stores import MemoryEvents
from pegboard.testing import FakeClock, FakeEncoder, fake_tool

NOW = ToolId("clock", "now")


@pytest.fixture
def resting(clock: FakeClock) -> ServerBreakers:
    return ServerBreakers(clock, RestPolicy(failures=3, rest=10, longest=35))


def call(failure: Any = None, *, ms: float = 100.0) -> Outcome:
    return Outcome(tool=NOW, success=failure is None, latency_ms=ms, failure=failure)


def fail(resting: ServerBreakers, times: int, **fields: Any) -> None:
    for _ in range(times):
        resting.observe(call("server", **fields))


@pytest.mark.requirement("001.breakers")
def test_a_server_that_fails_so_many_times_in_a_row_is_left_alone(resting: ServerBreakers) -> None:
    fail(resting, 2)
    assert resting.resting() == frozenset()
    fail(resting, 1)
    assert resting.resting() == {"clock"}


@pytest.mark.parametrize("answer", [None, "tool"])
def test_an_answer_of_any_kind_in_between_begins_the_count_anew(resting: ServerBreakers, answer: Any) -> None:
    fail(resting, 2)
    resting.observe(call(answer))
    fail(resting, 2)

    assert resting.resting() == frozenset()


def test_the_callers_mistakes_neither_open_a_circuit_nor_close_it(resting: ServerBreakers) -> None:
    for _ in range(9):
        resting.observe(call("caller"))
    assert resting.resting() == frozenset()
    fail(resting, 3)
    resting.observe(call("caller"))
    assert resting.resting() == {"clock"}


@pytest.mark.requirement("001.breakers")
def test_after_its_rest_a_server_is_tried_and_rests_twice_as_long_if_it_fails_up_to_a_bound(
    resting: ServerBreakers, clock: FakeClock
) -> None:
    fail(resting, 3)
    for rest in (10, 20, 35, 35):
        clock.advance(rest - 1)
        assert resting.resting() == {"clock"}
        clock.advance(1)
        assert resting.resting() == frozenset(), "half open"
        fail(resting, 1, ms=0)


@pytest.mark.requirement("001.breakers")
def test_a_probe_that_is_answered_closes_the_circuit_for_good(resting: ServerBreakers, clock: FakeClock) -> None:
    fail(resting, 3)
    clock.advance(10)
    resting.observe(call())
    fail(resting, 2)

    assert resting.resting() == frozenset()


def test_a_call_by_name_that_is_answered_ends_the_rest(resting: ServerBreakers) -> None:
    fail(resting, 3)
    resting.observe(call())

    assert resting.resting() == frozenset()


def test_a_call_that_began_before_or_during_the_rest_and_fails_after_it_is_no_probe(
    resting: ServerBreakers, clock: FakeClock
) -> None:
    fail(resting, 3)
    clock.advance(11)
    fail(resting, 1, ms=5_000)

    assert resting.resting() == frozenset()


def test_a_new_policy_holds_from_the_next_rest_on(resting: ServerBreakers, clock: FakeClock) -> None:
    fail(resting, 3)
    resting.adopt(RestPolicy(failures=1, rest=2, longest=15))
    clock.advance(9)
    assert resting.resting() == {"clock"}, "as it was told"
    clock.advance(1)
    fail(resting, 1, ms=0)
    clock.advance(14)
    assert resting.resting() == {"clock"}
    clock.advance(1)
    assert resting.resting() == frozenset()


def test_with_no_number_of_failures_no_server_is_ever_left_alone(clock: FakeClock) -> None:
    never = ServerBreakers(clock, RestPolicy(failures=0, rest=10))
    fail(never, 100)

    assert never.resting() == frozenset()


@pytest.mark.requirement("001.breakers")
@pytest.mark.parametrize("profile", PROFILES)
async def test_the_tools_of_a_server_that_rests_are_not_offered_but_stay_callable_under_every_profile(
    profile: str, resting: ServerBreakers, clock: FakeClock, encoder: FakeEncoder
) -> None:
    board = board_of(profile, resting, clock, encoder)
    before = await board.route("the time now")
    assert NOW in before.active
    fail(resting, 3)

    decision = await board.route("the time now")

    assert NOW not in decision.active
    assert NOW in decision.reachable
    assert decision.left_out[NOW] == "its server failed repeatedly and is not used for a while"
    assert NOW not in (await board.choices("the time now")).active
    clock.advance(10)
    assert NOW in (await board.route("the time now")).active


@pytest.mark.parametrize("pinned", [(), ("now",)])
@pytest.mark.parametrize("profile", PROFILES)
async def test_a_tool_of_a_server_that_rests_is_explained_by_that_and_takes_no_place(
    profile: str, pinned: tuple[str, ...], resting: ServerBreakers, clock: FakeClock, encoder: FakeEncoder
) -> None:
    board = board_of(profile, resting, clock, encoder, pinned)
    fail(resting, 3)

    explained = await board.explain("the time now")

    said = explained.of_tool(NOW)
    assert said.status == "withheld"
    assert said.why.endswith(": its server failed repeatedly and is not used for a while.")
    assert NOW not in explained._passed


async def test_where_every_tool_is_on_a_server_that_rests_all_are_offered(
    resting: ServerBreakers, clock: FakeClock, encoder: FakeEncoder
) -> None:
    board = board_of("hybrid", resting, clock, encoder)
    fail(resting, 3)

    decision = await board.route("the time now", Filter(servers=frozenset({"clock"})))

    assert NOW in decision.active
    assert decision.left_out == {}


def board_of(
    profile: str, resting: ServerBreakers, clock: FakeClock, encoder: FakeEncoder, pinned: tuple[str, ...] = ()
) -> RoutingBoard:
    groups = {"clock": ["now", "later"], "files": ["read", "write"]}
    descriptions = {"now": "the time now", "later": "the time later"}
    catalog = Catalog.build(
        (
            Server(name=ServerName(server)),
            [fake_tool(name, descriptions.get(name, f"{name} a file"), server=server) for name in names],
        )
        for server, names in groups.items()
    )
    return RoutingBoard(
        catalog, PROFILES[profile], documents=encoder, queries=encoder, events=MemoryEvents(), clock=clock,
        resting=resting, always_available=pinned,
    )  # fmt: skip
