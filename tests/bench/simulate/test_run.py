from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from pegboard.evaluation import ranking_metrics
from pegboard_bench.simulate.run import MEASURES, Asked, Cell, run
from pegboard_bench.simulate.tasks import tasks
from pegboard_bench.simulate.world import draw
from simulated import CANONICAL, QUERIES, TOOLS, asked, routes


@pytest.fixture(scope="module")
def small() -> Asked:
    return asked()


def test_a_run_is_the_same_again_and_another_seed_is_another_run(small: Asked) -> None:
    cell = Cell(asked="tasks")
    first, again, other = run(cell, small, 1), run(cell, small, 1), run(cell, small, 2)

    for name, values in first.items():
        np.testing.assert_array_equal(values, again[name])
    assert any((values != other[name]).any() for name, values in first.items())


def test_every_policy_gets_every_task_once_in_each_pass(small: Asked) -> None:
    found = run(Cell(asked="tasks", passes=2), small, 1)

    assert found["order"].shape == (2, len(QUERIES))
    assert sorted(found["order"][1]) == list(range(len(QUERIES)))
    assert found["ehrr"].shape == (2, len(QUERIES), len(MEASURES))


def test_the_text_of_the_task_is_another_policy_only_where_it_is_another_text() -> None:
    assert "rag_mcp_task_text" not in run(Cell(asked="tasks"), asked(), 1)
    assert "rag_mcp_task_text" in run(Cell(asked="routes"), routes(), 1)


def test_what_is_learnt_in_one_pass_is_there_in_the_next(small: Asked) -> None:
    found = run(Cell(asked="tasks", passes=2), small, 1)
    mrr = MEASURES.index("mrr")

    np.testing.assert_array_equal(found["rag_mcp"][0, :, mrr], found["rag_mcp"][1, :, mrr])
    assert (found["ehrr"][0, :, mrr] != found["ehrr"][1, :, mrr]).any()


def test_a_ranking_is_judged_as_the_benchmark_of_ranking_judges_it(small: Asked) -> None:
    found = run(Cell(asked="tasks"), small, 1)["hybrid"][0]
    for number, query in enumerate(QUERIES):
        ranking = [TOOLS[place].id for place in np.argsort(-small.relevance.hybrid[number], kind="stable")]
        expected = ranking_metrics.score(ranking_metrics.goals(query.relevant, (), CANONICAL), ranking, CANONICAL)
        assert found[number, MEASURES.index("mrr")] == pytest.approx(expected["mrr"])
        assert found[number, MEASURES.index("recall@3")] == pytest.approx(expected["recall@3"])


def test_measures_of_an_episode_agree_with_each_other(small: Asked) -> None:
    for name, played in run(Cell(asked="tasks"), small, 1).items():
        if name == "order":
            continue
        of = {measure: played[0, :, place] for place, measure in enumerate(MEASURES)}
        assert ((of["success"] == 1) == (of["reached"] == 1)).all()
        assert (of["invalid_calls"] <= of["calls"]).all()
        assert (of["invalid_routes"] <= of["routes"]).all()
        assert (of["cost_usd"] <= 0.15).all()


def test_a_copy_of_a_server_reaches_the_goals_of_what_it_copies() -> None:
    world = draw(TOOLS, 1, copies=3)
    first = tasks(QUERIES, [20] * len(QUERIES), CANONICAL, world)[1]

    assert sorted(map(sorted, first.goals)) == [[8, 56, 104], [25, 73, 121]]


def test_any_tool_of_a_group_reaches_its_goal() -> None:
    either = replace(QUERIES[0], relevant=(TOOLS[0].id,), any_of=((TOOLS[0].id, TOOLS[9].id),))

    assert tasks([either], [20], CANONICAL, draw(TOOLS, 1))[0].goals == (frozenset({0, 9}),)
