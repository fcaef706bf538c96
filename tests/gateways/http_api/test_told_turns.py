"""Turns of which an outcome may be reported: what they hold, and whose they are."""

from __future__ import annotations

from collections.abc import Mapping

from pegboard.gateways.http_api.told_turns import ToldTurn, ToldTurns
from pegboard.model import ServerName, ToolId

ANN = ("static", "ann")
NAMES = {ToolId(server=ServerName("shop"), name="refund_order"): "refund"}


def told(names: Mapping[ToolId, str] = NAMES) -> ToldTurn:
    return ToldTurn(habits="", query="give it back", names=names, own=False)


def test_a_turn_is_found_by_its_owner_alone() -> None:
    turns = ToldTurns()
    turns.remember(ANN, "1", told())

    assert turns.of(ANN, "1") == told()
    assert turns.of(None, "1") is None
    assert turns.of(ANN, None) is None


def test_a_tool_is_found_by_the_name_that_was_offered() -> None:
    assert told().tool("refund") == next(iter(NAMES))
    assert told().tool("refund_order") is None


def test_turns_over_the_same_tools_count_their_names_once() -> None:
    turns = ToldTurns(most_turns=100, most_names=len(NAMES))
    for number in range(100):
        turns.remember(ANN, str(number), told())

    assert turns.of(ANN, "0") is not None


def test_the_oldest_turns_are_forgotten_where_different_tools_have_too_many_names() -> None:
    turns = ToldTurns(most_turns=100, most_names=2)
    for number in range(3):
        turns.remember(ANN, str(number), told(dict(NAMES)))

    assert [turns.of(ANN, str(number)) is None for number in range(3)] == [True, False, False]


def test_a_turn_of_more_names_than_are_kept_is_kept_while_it_is_the_last() -> None:
    turns = ToldTurns(most_names=0)
    turns.remember(ANN, "1", told())
    assert turns.of(ANN, "1") is not None
    turns.remember(ANN, "2", told(dict(NAMES)))

    assert (turns.of(ANN, "1"), turns.of(ANN, "2")) == (None, told())


def test_one_owner_with_many_tools_takes_no_other_owners_turn() -> None:
    turns = ToldTurns(most_turns=100, most_names=20)
    turns.remember(ANN, "1", told())
    for number in range(200):
        names = {ToolId(server=ServerName("own"), name=f"{number}_{at}"): "x" for at in range(5)}
        turns.remember(("static", "eve"), str(number), ToldTurn(habits="", query="", names=names, own=True))

    assert turns.of(ANN, "1") == told()
    assert turns.of(("static", "eve"), "199") is not None
    assert turns.of(("static", "eve"), "0") is None


def test_one_owner_with_many_turns_takes_no_other_owners_turn() -> None:
    turns = ToldTurns(most_turns=10)
    turns.remember(ANN, "1", told())
    for number in range(50):
        turns.remember(None, str(number), told())

    assert turns.of(ANN, "1") == told()
    assert [turns.of(None, str(number)) is None for number in (40, 41)] == [True, False]
