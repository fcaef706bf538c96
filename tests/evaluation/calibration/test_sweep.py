from __future__ import annotations

import numpy as np
import pytest

from pegboard.evaluation.calibration.labelled_queries import LabelledQuery, folds
from pegboard.evaluation.calibration.sweep import THETAS, served, sweep
from pegboard.retrieval.fusion_fit import Example


def query(cosines: list[float], *goals: set[int], text: str = "x") -> LabelledQuery:
    example = Example(
        parts={"cosine": np.array(cosines, np.float32)}, goals=[frozenset(goal) for goal in goals], clauses=1
    )
    return LabelledQuery(text=text, example=example, canonical=np.arange(len(cosines)))


def around(theta: float, count: int) -> list[LabelledQuery]:
    """Relevant tools just above θ, all others just below it."""
    return [query([theta + 0.01, *[theta - 0.01] * 9], {0}, text=f"request {number}") for number in range(count)]


@pytest.mark.requirement("000.calibration")
def test_thresholds_go_from_a_tenth_to_a_half_in_steps_of_two_hundredths() -> None:
    assert THETAS[0] == 0.10
    assert THETAS[-1] == 0.50
    np.testing.assert_allclose(np.diff(THETAS), 0.02)


def test_precision_recall_and_f1_are_of_the_tools_that_pass_and_are_among_the_k() -> None:
    asked = query([0.9, 0.8, 0.7, 0.6, 0.1], {0}, {3}, {4})

    assert served(asked, 0.5, None) == pytest.approx((1 / 2, 2 / 3, 4 / 7, 4))
    assert served(asked, 0.5, 2) == pytest.approx((1 / 2, 1 / 3, 2 / 5, 2))
    assert served(asked, 0.95, None) == (0.0, 0.0, 0.0, 0.0)


def test_one_tool_of_a_group_reaches_its_goal() -> None:
    assert served(query([0.9, 0.1, 0.1], {0, 1}), 0.5, None) == (1.0, 1.0, 1.0, 1.0)


@pytest.mark.requirement("000.calibration")
def test_the_threshold_between_relevant_and_other_tools_is_found_and_kept() -> None:
    queries = around(0.40, 40)
    found = sweep(queries, 10, 0.28, folds([each.text for each in queries], 5, 1), 1)

    assert found.best == 0.40
    assert (found.held_out_after, found.better) == (1.0, True)
    assert [point.theta for point in found.points] == list(THETAS)
    assert max(found.points, key=lambda point: point.f1).theta == 0.40


def test_a_threshold_that_is_as_good_as_before_stays() -> None:
    queries = around(0.28, 40)
    found = sweep(queries, 10, 0.28, folds([each.text for each in queries], 5, 1), 1)

    assert (found.best, found.better) == (0.28, False)
    assert found.gain.mean == 0


def test_a_held_out_query_does_not_choose_its_own_threshold() -> None:
    queries = [*around(0.20, 4), query([0.46, *[0.44] * 9], {0}, text="alone")]
    found = sweep(queries, 10, 0.10, np.array([0, 0, 1, 1, 2]), 1)

    assert found.best == 0.20
    assert found.held_out_after == pytest.approx((4 * 1 + served(queries[-1], 0.20, 10)[2]) / 5)
