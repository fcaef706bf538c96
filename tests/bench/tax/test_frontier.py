from __future__ import annotations

import pytest

from pegboard.catalog import Catalog
from pegboard.evaluation.datasets import Query, ToolSet
from pegboard.model import Server, ServerName
from pegboard.testing import fake_tool
from pegboard_bench.tax.frontier import by_ranking, mean, recall_at

TOOLS = tuple(fake_tool(f"tool_{number}", f"Does thing {number}") for number in range(4))
CATALOG = Catalog.build([(Server(name=ServerName("fake")), TOOLS)])
SET = ToolSet(
    name="small",
    catalog=CATALOG,
    queries=(Query(id="a", text="a", relevant=(TOOLS[1].id,)), Query(id="b", text="b", relevant=(TOOLS[3].id,))),
)
RANKINGS = {0: [tool.id for tool in TOOLS], 1: [tool.id for tool in TOOLS[:2]]}


def test_a_curve_has_the_tokens_and_the_recall_of_each_number_of_tools() -> None:
    curve = by_ranking(SET, RANKINGS)
    first = CATALOG.token_counts[0]

    assert curve["tokens"][0] == [first, first]
    assert [row[0] for row in curve["recall"][:3]] == [0, 1, 1]
    assert curve["tokens"][-1] == [sum(CATALOG.token_counts), sum(CATALOG.token_counts[:2])]
    assert mean(curve)[1][-1] == 0.5


def test_recall_between_two_points_is_in_proportion_and_beyond_the_end_that_of_the_end() -> None:
    curve = by_ranking(SET, RANKINGS)
    one, two = mean(curve)[0][:2]

    assert recall_at(curve, one)[0] == 0
    assert recall_at(curve, (one + two) / 2)[0] == pytest.approx(0.5)
    assert list(recall_at(curve, 1e6)) == [1, 0]
