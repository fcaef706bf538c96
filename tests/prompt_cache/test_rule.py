from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from pegboard.prompt_cache import CachePrices, Moment, known_prices, prices_of, verdict
from pegboard.prompt_cache.rule import bill_now, expected_bill

ANTHROPIC = prices_of(known_prices(), "anthropic", "claude-sonnet-5")
OPENAI = prices_of(known_prices(), "openai", "gpt-5.4")
TABLE = [row.prices for row in known_prices()]
BOARD = (400,) * 50
"""Fifty tools of 400 tokens."""


def moment(**changed: object) -> Moment:
    usual = Moment(
        tokens=BOARD,
        must=frozenset(),
        relevant=(3, 7),
        likely=(4, 5),
        held=None,
        behind=800,
        ahead=100,
        idle=None,
        whole_idle=None,
        turns=10,
        growth=300,
        news=0.0,
    )
    return replace(usual, **changed)  # type: ignore[arg-type] # fields by name


@st.composite
def moments(draw: st.DrawFn) -> Moment:
    tokens = draw(st.lists(st.integers(20, 3_000), min_size=1, max_size=12))
    places = st.integers(0, len(tokens) - 1)
    ranked = draw(st.permutations(range(len(tokens))))
    wanted = draw(st.integers(0, len(tokens)))
    return Moment(
        tokens=tokens,
        must=draw(st.frozensets(places, max_size=3)),
        relevant=tuple(ranked[:wanted]),
        likely=tuple(ranked[wanted:]),
        held=draw(st.none() | st.frozensets(places)),
        behind=draw(st.integers(0, 50_000)),
        ahead=draw(st.integers(0, 5_000)),
        idle=draw(st.none() | st.floats(0, 10_000)),
        whole_idle=draw(st.none() | st.floats(0, 10_000)),
        turns=draw(st.floats(1, 100)),
        growth=draw(st.none() | st.floats(0, 5_000)),
        returns=draw(st.floats(0, 1)),
        news=draw(st.floats(0, 1)),
        system=0,
        kept=draw(st.floats(0, 1)),
    )


@pytest.mark.requirement("design.cache-rule")
@given(moments(), st.sampled_from(TABLE))
def test_what_must_stay_and_what_is_relevant_is_always_sent_in_the_requests_order(
    given_moment: Moment, prices: CachePrices
) -> None:
    places = verdict(given_moment, prices).places

    assert set(places) >= given_moment.must | set(given_moment.relevant)
    assert list(places) == sorted(set(places))
    assert set(places) <= set(range(len(given_moment.tokens)))


@pytest.mark.requirement("design.cache-rule")
@given(moments(), st.sampled_from(TABLE))
def test_no_verdict_is_expected_to_cost_more_than_keeping_what_is_held_or_sending_all(
    given_moment: Moment, prices: CachePrices
) -> None:
    found = verdict(given_moment, prices)
    kept = (given_moment.held or frozenset()) | given_moment.base

    assert found.bill <= expected_bill(kept, given_moment, prices)
    assert found.bill <= expected_bill(given_moment.all, given_moment, prices)


@given(moments(), st.sampled_from(TABLE))
def test_what_is_held_and_enough_is_kept_or_changed_for_a_smaller_bill_only(
    given_moment: Moment, prices: CachePrices
) -> None:
    held = (given_moment.held or frozenset()) | given_moment.base
    settled = replace(given_moment, held=held)
    found = verdict(settled, prices)

    assert (found.kind == "kept") == (frozenset(found.places) == held)
    if found.kind != "kept":
        assert found.bill < expected_bill(held, settled, prices)


@given(moments(), st.sampled_from(TABLE), st.floats(1, 100))
def test_the_longer_a_conversation_the_fewer_tools_where_no_news_is_expected(
    given_moment: Moment, prices: CachePrices, more: float
) -> None:
    assume(given_moment.behind >= prices.minimum)
    shorter = replace(given_moment, news=0.0, returns=1.0)
    longer = replace(shorter, turns=shorter.turns + more)

    def sent(at: Moment) -> int:
        return sum(at.tokens[place] for place in verdict(at, prices).places)

    assert sent(longer) <= sent(shorter)


@given(moments(), st.sampled_from(TABLE))
def test_equal_moments_have_equal_verdicts(given_moment: Moment, prices: CachePrices) -> None:
    assert verdict(given_moment, prices) == verdict(replace(given_moment), prices)


def test_a_first_turn_on_a_cold_cache_sends_what_is_wanted() -> None:
    found = verdict(moment(), ANTHROPIC)

    assert (found.places, found.kind) == ((3, 7), "first")
    assert found.bill < found.whole_bill


def test_a_single_turn_reads_all_tools_where_others_have_kept_them_cached() -> None:
    warm = moment(turns=1, whole_idle=60.0, relevant=(1, 2, 3, 4, 5))

    assert verdict(warm, ANTHROPIC).kind == "whole"
    assert verdict(replace(warm, whole_idle=301.0), ANTHROPIC).kind == "first"
    assert verdict(replace(warm, turns=20), ANTHROPIC).kind == "first"


@pytest.mark.requirement("design.cache-rule")
def test_an_intent_that_has_left_does_not_take_its_tools_along() -> None:
    held = frozenset({3, 7, 20})
    later = moment(held=held, idle=20.0, behind=9_000, turns=8)

    found = verdict(later, ANTHROPIC)

    assert (frozenset(found.places), found.kind) == (held, "kept")


@pytest.mark.requirement("design.cache-rule")
def test_held_tools_leave_where_reading_them_costs_more_than_writing_the_rest_anew() -> None:
    held = frozenset(range(40))
    later = moment(held=held, idle=20.0, behind=1_000, turns=30, returns=1.0)

    assert verdict(later, ANTHROPIC).kind == "shrunk"
    assert verdict(replace(later, behind=60_000), ANTHROPIC).kind == "kept"
    assert verdict(replace(later, turns=1), ANTHROPIC).kind == "kept"


def test_on_a_cold_cache_nothing_is_lost_by_leaving_out() -> None:
    held = frozenset(range(40))

    assert verdict(moment(held=held, idle=400.0, turns=1), ANTHROPIC).places == (3, 7)


def test_a_tool_that_is_missing_is_added_whatever_it_costs() -> None:
    later = moment(held=frozenset({3}), idle=20.0, behind=90_000, turns=1)

    found = verdict(later, OPENAI)

    assert found.places == (3, 7)
    assert found.kind == "grown"


def test_where_every_turn_brings_news_all_tools_are_sent() -> None:
    later = moment(held=frozenset({3}), idle=20.0, behind=90_000, turns=30, news=1.0)

    assert verdict(later, ANTHROPIC).kind == "whole"


def test_the_next_best_are_provided_where_that_spares_writing_all_anew() -> None:
    few = moment(tokens=(400,) * 8, relevant=(3,), likely=(4, 5, 1, 0), behind=30_000, turns=20, news=0.5)

    places = verdict(replace(few, tokens=(*((400,) * 6), 90_000, 90_000)), ANTHROPIC).places

    assert set(places) == {0, 1, 3, 4, 5}


def test_without_a_cache_only_what_is_wanted_is_sent() -> None:
    held = frozenset(range(40))

    assert verdict(moment(held=held, idle=1.0, turns=1), CachePrices()).places == (3, 7)


@pytest.mark.requirement("design.cache-rule")
def test_the_search_counts_wherever_tools_are_left_out() -> None:
    some, searched = frozenset({3, 7}), moment(search=600)

    assert bill_now(some, searched, OPENAI) - bill_now(some, moment(), OPENAI) == pytest.approx(600 * OPENAI.write)
    assert expected_bill(some, searched, OPENAI) > bill_now(some, searched, OPENAI)
    assert bill_now(searched.all, searched, OPENAI) == bill_now(searched.all, moment(), OPENAI)
    assert expected_bill(searched.all, searched, OPENAI) == expected_bill(searched.all, moment(), OPENAI)


def test_a_board_that_is_smaller_than_what_is_relevant_and_the_search_is_sent_whole() -> None:
    small = moment(tokens=(400,) * 4, relevant=(3,), likely=())

    assert verdict(small, OPENAI).places == (3,)
    assert verdict(replace(small, search=1_300), OPENAI).kind == "whole"
