"""What a conversation was billed, and when it has lost too much by its way."""

from __future__ import annotations

from dataclasses import replace

import pytest

from pegboard.prompt_cache import CacheAccount, CachePrices, Moment, rounds_bill
from pegboard.prompt_cache.account import EXCHANGE

PRICES = CachePrices(read=0.1, write=1.25, ttl=300)
SAME, MORE = frozenset({0}), frozenset({0, 1})


def moment() -> Moment:
    return Moment(
        tokens=[1000, 500, 4000],
        must=frozenset(),
        relevant=(0,),
        likely=(),
        held=None,
        behind=2000,
        ahead=100,
        idle=None,
        whole_idle=None,
        turns=1,
    )


def test_a_round_with_the_same_tools_reads_what_the_request_has_just_written() -> None:
    assert rounds_bill([SAME, SAME], moment(), PRICES) == pytest.approx(0.1 * 3100 + 1.25 * EXCHANGE)


@pytest.mark.requirement("A3")
def test_a_round_that_brings_tools_writes_everything_anew() -> None:
    bill = rounds_bill([SAME, MORE, MORE], moment(), PRICES)

    assert bill == pytest.approx(1.25 * (3600 + EXCHANGE) + 0.1 * (3600 + EXCHANGE) + 1.25 * EXCHANGE)


@pytest.mark.requirement("A3")
def test_a_round_without_all_tools_has_the_search_too() -> None:
    searched, every = replace(moment(), search=600), frozenset({0, 1, 2})

    assert rounds_bill([SAME, MORE], searched, PRICES) == pytest.approx(1.25 * (3600 + 600 + EXCHANGE))
    assert rounds_bill([SAME, every], searched, PRICES) == rounds_bill([SAME, every], moment(), PRICES)


@pytest.mark.requirement("A3")
def test_rounds_are_billed_and_would_not_have_been_with_all_tools() -> None:
    account = CacheAccount().after(3000, 9000).after(rounds_bill([SAME, MORE], moment(), PRICES))

    assert (account.whole, account.billed) == (9000, pytest.approx(3000 + 1.25 * 3700))


def test_what_the_provider_counts_otherwise_it_would_have_with_all_tools_too() -> None:
    account = CacheAccount().after(3000, 9000).corrected(3000, 3600)

    assert (account.billed, account.whole) == (3600, 9600)


@pytest.mark.requirement("A3")
def test_a_conversation_is_left_once_it_has_lost_more_than_the_other_tools_cost_to_write() -> None:
    assert not CacheAccount(billed=13_000, whole=10_000).has_lost(4000)
    assert CacheAccount(billed=14_001, whole=10_000).has_lost(4000)
    assert not CacheAccount(billed=9000, whole=10_000).has_lost(0)


def test_a_loss_that_may_be_chance_is_none() -> None:
    assert not CacheAccount(billed=101_000, whole=100_000).has_lost(0)
    assert CacheAccount(billed=102_001, whole=100_000).has_lost(0)
