from __future__ import annotations

import pytest

from pegboard.prompt_cache import CachePrices
from pegboard.prompt_cache.bill import Outlook, later, salvage, turn

ANTHROPIC = CachePrices(read=0.1, write=1.25, ttl=300, minimum=1024)
T, T_LESS, H = 20_000, 2_000, 3_000


def total(tools: int, prices: CachePrices, *, warm: float, turns: int) -> float:
    """Without growth: the formulas of DESIGN §2.4."""
    outlook = Outlook(turns=turns, growth=0, returns=1)
    return turn(tools + H, 0, warm, prices) + later(tools + H, outlook, prices)


def test_keeping_reads_the_prefix_on_each_turn() -> None:
    assert total(T, ANTHROPIC, warm=1, turns=5) == pytest.approx(5 * 0.1 * (T + H))


def test_changing_writes_it_once_and_reads_it_afterwards() -> None:
    assert total(T_LESS, ANTHROPIC, warm=0, turns=5) == pytest.approx(1.25 * (T_LESS + H) + 4 * 0.1 * (T_LESS + H))


@pytest.mark.parametrize("turns", [1, 2, 3, 5, 20])
def test_changing_pays_where_n_r_times_what_is_saved_exceeds_what_writing_costs_more(turns: int) -> None:
    kept, changed = total(T, ANTHROPIC, warm=1, turns=turns), total(T_LESS, ANTHROPIC, warm=0, turns=turns)

    assert (changed < kept) == (turns * 0.1 * (T - T_LESS) > (1.25 - 0.1) * (T_LESS + H))


def test_below_the_minimum_length_a_token_costs_what_it_costs() -> None:
    assert turn(600, 100, 1.0, ANTHROPIC) == 700
    assert later(600, Outlook(turns=4, growth=0, returns=1), ANTHROPIC) == 3 * 600


def test_later_turns_add_up_as_if_each_were_billed_alone() -> None:
    prefix, billed = 5_000, 0.0
    for _ in range(9):
        billed += turn(prefix, 400, 1.0, ANTHROPIC)
        prefix += 400

    assert later(5_000, Outlook(turns=10, growth=400, returns=1), ANTHROPIC) == pytest.approx(billed)


def test_later_turns_that_grow_over_the_minimum_add_up_too() -> None:
    prefix, billed = 500, 0.0
    for _ in range(9):
        billed += turn(prefix, 200, 1.0, ANTHROPIC)
        prefix += 200

    assert later(500, Outlook(turns=10, growth=200, returns=1), ANTHROPIC) == pytest.approx(billed)


def test_a_turn_that_comes_too_late_writes_all_but_what_others_have_kept() -> None:
    late = Outlook(turns=2, growth=0, returns=0)

    assert later(T + H, late, ANTHROPIC) == pytest.approx(1.25 * (T + H))
    assert later(T + H, late, ANTHROPIC, salvaged=salvage(T, 1.0, ANTHROPIC)) == pytest.approx(0.1 * T + 1.25 * H)


def test_a_beginning_below_the_minimum_is_kept_by_nobody() -> None:
    assert salvage(1_000, 1.0, ANTHROPIC) == 0
