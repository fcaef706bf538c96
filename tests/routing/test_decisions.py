from __future__ import annotations

import numpy as np
import pytest

from pegboard import Board, Catalog
from pegboard.model import Scores
from pegboard.routing.decisions import candidates, vector_hash, widened

PLACES = np.array([2, 0], np.intp)


def scores(**parts: list[float]) -> Scores:
    columns = {name: np.array(values, np.float32) for name, values in parts.items()}
    return Scores(values=np.array([0.5, 0.1, 0.75] + [0] * 5, np.float32), scale="cosine", parts=columns)


def test_candidates_carry_their_place_score_and_parts(town: Catalog) -> None:
    shown = candidates(town.tools, PLACES, scores(cosine=[1, 2, 3] + [0] * 5, bm25=[4, 5, 6] + [0] * 5))

    assert [(each.tool.name, each.rank, each.score) for each in shown] == [
        ("get_forecast", 0, 0.75),
        ("renew_loan", 1, 0.5),
    ]
    assert [each.parts for each in shown] == [{"cosine": 3, "bm25": 6}, {"cosine": 1, "bm25": 4}]


def test_scores_without_parts_make_candidates_without_parts(town: Catalog) -> None:
    assert [each.parts for each in candidates(town.tools, PLACES, scores())] == [{}, {}]


def test_without_scores_candidates_stand_in_the_order_given(town: Catalog) -> None:
    assert [(each.tool.name, each.score) for each in candidates(town.tools, PLACES, None)] == [
        ("get_forecast", 0.0),
        ("renew_loan", 0.0),
    ]


def test_no_places_make_no_candidates(town: Catalog) -> None:
    assert candidates(town.tools, PLACES[:0], scores(cosine=[0.0] * 8)) == ()


@pytest.mark.requirement("M30", "000.events")
def test_the_hash_of_a_vector_is_equal_for_equal_queries_and_shorter_than_what_it_hides() -> None:
    first, same, other = (np.array(values, np.float32) for values in ([1, 2], [1, 2], [2, 1]))

    assert vector_hash(first) == vector_hash(same) != vector_hash(other)
    assert len(vector_hash(first)) == 16
    assert vector_hash(None) == ""


def test_however_many_calls_were_refused_all_tools_are_the_most(town: Catalog) -> None:
    board = Board(tools=[dict(tool.definition) for tool in town.tools], profile="keyword")
    decision = board.route_now("the forecast?")

    wide = widened(decision, board.catalog, [f"no_such_{number}" for number in range(10_000)])

    assert set(wide.active) <= set(decision.reachable)
    assert set(wide.active) == set(decision.active) | {each.tool for each in decision.candidates}


def test_a_refused_tool_is_added_by_any_of_its_names() -> None:
    names = ("tide.high", "tide.low", "moon")
    board = Board(tools=[{"name": name, "description": f"Says the {name}"} for name in names], profile="keyword")
    decision = board.route_now("the sun?")
    low = next(tool for tool in decision.reachable if tool.name == "tide.low")

    for name in ("tide_low", "tide.low", str(low)):
        assert low in widened(decision, board.catalog, ["nothing", name]).active
