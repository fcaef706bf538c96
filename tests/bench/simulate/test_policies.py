from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from pegboard_bench.simulate.calls import Calls, Chance
from pegboard_bench.simulate.chooser import Policy
from pegboard_bench.simulate.policies import CONTEXT, POLICIES, Known
from pegboard_bench.simulate.world import World, draw
from simulated import TOOLS, relevance

ALL = np.ones(len(TOOLS), np.bool_)


@pytest.fixture
def world() -> World:
    return draw(TOOLS, 1)


@pytest.fixture
def known(world: World) -> Known:
    return Known(
        relevance=relevance().within(world),
        original=relevance(seed=2).within(world),
        server_of=world.server_of,
        prices=world.price,
        asks=np.bincount(world.server_of, world.price) / np.bincount(world.server_of),
        tokens=np.full(len(TOOLS), 100.0),
    )


def policy(name: str, known: Known) -> Policy:
    return POLICIES[name](known)


def fail(policy: Policy, place: int, world: World, times: int = 6) -> None:
    """Tell it of calls that failed."""
    broken = replace(world, success=np.zeros_like(world.success), crash=np.zeros_like(world.crash))
    for moment in range(times):
        policy.observe(place, Calls(broken, Chance.of(broken, 1, moment)).call(place))


@pytest.mark.parametrize("name", [name for name in POLICIES if name != "saturation"])
def test_a_policy_offers_three_tools_and_none_that_was_offered_before(name: str, known: Known) -> None:
    asked = policy(name, known)
    first = asked.route(3, ALL)
    left = ALL.copy()
    left[first.places] = False
    second = asked.route(3, left)

    assert len(first.places) == len(second.places) == 3
    assert first.ranking[:3].tolist() == first.places.tolist()
    assert not set(first.places) & set(second.places)


def test_saturation_offers_as_many_tools_as_fit_into_the_prompt(known: Known) -> None:
    large = replace(known, tokens=np.full(len(TOOLS), CONTEXT / 10.5))

    assert policy("saturation", known).route(0, ALL).places.tolist() == list(range(len(TOOLS)))
    assert policy("saturation", large).route(0, ALL).places.tolist() == list(range(10))


def test_a_cut_leaves_the_tools_of_the_five_most_similar_servers(known: Known) -> None:
    cut, flat = policy("rag_mcp", known).route(3, ALL), policy("rag_mcp_flat", known).route(3, ALL)
    servers = set(known.server_of[cut.ranking].tolist())

    assert servers == set(np.argsort(-known.relevance.servers[3])[:5].tolist())
    assert len(flat.ranking) == len(TOOLS)
    assert flat.places[0] == known.relevance.tools[3].argmax()


def test_rag_mcp_can_be_asked_with_the_text_of_the_whole_task(known: Known) -> None:
    whole = policy("rag_mcp_task_text", replace(known, original=known.relevance))

    assert whole.route(3, ALL).ranking.tolist() == policy("rag_mcp", known).route(3, ALL).ranking.tolist()
    assert policy("rag_mcp_task_text", known).route(3, ALL).ranking.tolist() != whole.route(3, ALL).ranking.tolist()


def test_before_its_first_call_ehrr_differs_from_similarity_by_prices_alone(known: Known) -> None:
    free = replace(known, prices=np.zeros_like(known.prices), asks=np.zeros_like(known.asks))

    assert policy("ehrr", free).route(3, ALL).ranking.tolist() == policy("rag_mcp", free).route(3, ALL).ranking.tolist()


@pytest.mark.parametrize("name", ["ehrr", "ehrr_no_auction", "ehrr_no_hierarchy", "ehrr_tenth", "hybrid_economics"])
def test_a_tool_that_failed_loses_its_place(name: str, known: Known, world: World) -> None:
    asked = policy(name, known)
    first = int(asked.route(3, ALL).ranking[0])
    fail(asked, first, world)

    assert int(asked.route(3, ALL).ranking[0]) != first


@pytest.mark.parametrize("name", ["ehrr_no_execution", "rag_mcp", "hybrid"])
def test_outcomes_teach_nothing_to_a_policy_that_does_not_look_at_them(name: str, known: Known, world: World) -> None:
    asked = policy(name, known)
    before = asked.route(3, ALL).ranking.tolist()
    fail(asked, before[0], world)

    assert asked.route(3, ALL).ranking.tolist() == before


def test_the_auction_leaves_out_servers_and_tools_that_ask_too_much(known: Known) -> None:
    dear = replace(known, prices=np.where(np.arange(len(TOOLS)) % 4 == 0, 0.2, 0.0), asks=known.asks)
    everything = replace(known, asks=np.full_like(known.asks, 9.0))
    taken = policy("ehrr", dear).route(3, ALL).ranking

    assert not (taken % 4 == 0).any()
    assert policy("ehrr", everything).route(3, ALL).places.tolist() == []
    assert len(policy("ehrr_no_auction", everything).route(3, ALL).places) == 3


def test_costs_do_not_bring_up_a_tool_that_is_not_relevant_but_where_they_are_subtracted(
    known: Known, world: World
) -> None:
    relevant = np.full_like(known.relevance.hybrid, 0.001)
    relevant[3, 8] = 0.2
    sure = replace(known, relevance=replace(known.relevance, hybrid=relevant))
    scaled, additive = policy("hybrid_economics", sure), policy("hybrid_additive", sure)
    for asked in (scaled, additive):
        fail(asked, 8, world, times=2)

    assert scaled.route(3, ALL).ranking[0] == 8
    assert additive.route(3, ALL).ranking[0] != 8


def test_a_tool_that_was_never_called_is_taken_to_be_as_its_server(known: Known, world: World) -> None:
    alike = replace(known, relevance=replace(known.relevance, hybrid=np.full_like(known.relevance.hybrid, 0.5)))
    asked = policy("hybrid_economics", replace(alike, prices=np.zeros_like(known.prices)))
    fail(asked, 8, world)

    assert set(asked.route(3, ALL).ranking[-4:].tolist()) == {8, 9, 10, 11}
