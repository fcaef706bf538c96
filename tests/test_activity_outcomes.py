from __future__ import annotations

from math import nan
from typing import Any

import pytest

from pegboard.activity_entries import NOT_RANKED, ActivityEntry, ScoredTool, scores_of
from pegboard.activity_outcomes import LostRank, decision_outcomes

RANKED = (ScoredTool("git/show", 0.9, True), ScoredTool("git/log", 0.8, True), ScoredTool("git/blame", 0.1, False))


def made(*called: str, **fields: Any) -> ActivityEntry:
    given: dict[str, Any] = {
        "id": "1",
        "at": 0.0,
        "door": "mcp",
        "kind": "search",
        "client": "a-client",
        "scores": scores_of(RANKED),
    }
    return ActivityEntry(called=called, **(given | fields))


def test_recall_is_the_share_of_calls_whose_tool_had_been_offered() -> None:
    entries = [made("git/show", "git/blame"), made("git/blame", failures=1), made("git/log"), made("git/other")]

    total = decision_outcomes(entries, 9).total

    assert (total.decisions, total.calls, total.offered, total.first, total.failures) == (4, 5, 2, 2, 1)
    assert (total.recall, total.first_call) == (0.4, 0.5)


def test_a_model_is_offered_what_it_was_sent_and_not_what_it_searched_for() -> None:
    entry = made("kept_before", "found", door="llm", model="a-model", client="", brought_back=("found",))

    [sums] = decision_outcomes([entry], 9).by_model

    assert (sums.name, sums.calls, sums.offered) == ("a-model", 2, 1)


def test_models_and_clients_come_by_their_decisions() -> None:
    entries = [made("git/show", client="one"), made("git/show", client="two"), made("git/log", client="two")]

    found = decision_outcomes(entries, 9)

    assert [(each.name, each.decisions) for each in found.by_model] == [("two", 2), ("one", 1)]
    assert [each.name for each in decision_outcomes(entries, 1).by_model] == ["two"]


def test_a_tool_loses_to_the_one_that_is_ranked_best_and_is_not_called() -> None:
    entries = [
        *(made("git/log") for _ in range(3)),
        made("git/blame", "git/log"),
        made("git/log", "git/show"),
        made("git/show"),
    ]

    assert decision_outcomes(entries, 9).lost == [
        LostRank(tool="git/log", best="git/show", times=3, offered=3),
        LostRank(tool="git/blame", best="git/show", times=1, offered=0),
    ]


def test_no_tool_loses_to_one_that_was_at_hand_without_a_score() -> None:
    entry = made("git/log", scores=scores_of([ScoredTool("git/show", nan, True), ScoredTool("git/log", nan, True)]))

    found = decision_outcomes([entry], 9)

    assert (found.total.recall, found.lost) == (1.0, [])


@pytest.mark.parametrize("entry", [made(), made("git/log", scores=NOT_RANKED)])
def test_decisions_without_calls_or_without_a_ranking_say_nothing(entry: ActivityEntry) -> None:
    found = decision_outcomes([entry], 9)

    assert (found.read, found.total.decisions, found.total.recall, found.lost) == (1, 0, None, [])
