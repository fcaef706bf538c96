from __future__ import annotations

from dataclasses import replace

import pytest

from pegboard.prompt_cache import Begun, Traffic, cheapest_way, expected_bills, known_prices, prices_of

PRICES = prices_of(known_prices(), "anthropic", "claude-sonnet-5")
TALKS = Traffic(turns=20, growth=500, wanted=1_000, returns=1.0, kept=1.0)
TOTAL, CONSTANT = 40_000, 900


def test_conversations_on_one_matter_get_what_is_relevant() -> None:
    assert cheapest_way(replace(TALKS, news=0.0, added=0.0, called=0.0), PRICES, TOTAL, 3_000) == "tools"


def test_conversations_that_go_from_one_matter_to_another_go_through_one_constant_tool() -> None:
    assert cheapest_way(replace(TALKS, news=0.8, added=800), PRICES, TOTAL, CONSTANT) == "call_tool"


def test_without_that_way_they_are_left_alone() -> None:
    assert cheapest_way(replace(TALKS, news=0.8, added=800), PRICES, TOTAL, CONSTANT, ("whole", "tools")) == "whole"


def test_single_turns_on_a_small_board_that_others_keep_cached_are_left_alone() -> None:
    assert cheapest_way(replace(TALKS, turns=1), PRICES, 2_000, CONSTANT) == "whole"


def test_what_saves_next_to_nothing_is_left_alone() -> None:
    traffic = replace(TALKS, news=0.0, added=0.0, called=0.0, kept=0.0)
    bills = expected_bills(traffic, PRICES, 1_010, CONSTANT)

    assert 0.98 * bills["whole"] < bills["tools"] < bills["whole"]
    assert cheapest_way(traffic, PRICES, 1_010, CONSTANT) == "whole"


@pytest.mark.parametrize(("before", "remaining"), [(0, 10), (9, 1), (10, 10), (40, 40)])
def test_a_conversation_that_outlives_the_mean_is_expected_to_last_as_long_again(before: int, remaining: float) -> None:
    assert Traffic(turns=10).remaining(before) == remaining


def test_a_conversation_revises_what_was_expected_of_it() -> None:
    calm, lively = TALKS.revised(0, 9), TALKS.revised(9, 9)

    assert calm.news < TALKS.news < lively.news < 1


@pytest.mark.parametrize(
    ("answers", "behind", "warm", "way"),
    [
        (1, 2_000, 1.0, "call_tool"),
        (19, 2_000, 1.0, "whole"),
        (1, 400_000, 1.0, "whole"),
        (19, 2_000, 0.0, "call_tool"),
    ],
    ids=["many turns to come", "one turn to come", "a long history is cached", "nothing is cached any more"],
)
def test_a_conversation_that_has_all_tools_keeps_them_where_what_is_cached_is_worth_more(
    answers: int, behind: int, warm: float, way: str
) -> None:
    begun = Begun(answers=answers, behind=behind, ahead=200, warm=warm)
    traffic = replace(TALKS, news=0.8, added=800)
    assert cheapest_way(traffic, PRICES, TOTAL, CONSTANT, ("whole", "call_tool"), begun=begun) == way
