from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pegboard_bench.certainty import BINS, Judged, adaptive, fixed, pooled, realised, reliability


def judged(values: list[float], found: list[int], **changes: object) -> Judged:
    """A query whose tools have these probabilities, best first, and whose goals are at these places."""
    relevant = np.zeros(len(values), np.bool_)
    relevant[found] = True
    made: dict[str, object] = {
        "values": np.array(values, np.float32),
        "relevant": relevant,
        "found": np.array(found, np.float64),
        "tokens": np.full(len(values), 100),
        "bars": {0.5: 0.4, 0.9: 0.1},
    }
    return Judged(**(made | changes))  # type: ignore[arg-type]


def test_probabilities_that_come_true_as_often_as_they_say_have_no_calibration_error() -> None:
    queries = [judged([0.5] * 20, list(range(10))) for _ in range(30)]

    found = reliability(queries)

    assert len(found.bins) == BINS
    assert found.ece == pytest.approx(0, abs=1e-6)
    assert sum(count for _, _, count in found.bins) == 600


def test_probabilities_that_say_twice_too_much_are_off_by_half() -> None:
    queries = [judged([1.0] * 20, list(range(0, 20, 2)))] * 30

    assert reliability(queries).ece == pytest.approx(0.5, abs=0.05)
    assert reliability(queries).skill < 0


def test_certain_and_right_has_the_whole_skill() -> None:
    queries = [judged([1.0] + [0.0] * 19, [0])] * 30

    assert reliability(queries).skill == pytest.approx(1)


def test_a_recall_is_realised_by_the_tools_above_its_bar() -> None:
    sure, torn = judged([0.9, 0.1], [0]), judged([0.5, 0.5], [1])

    assert realised([sure, torn], 0.5) == 1.0
    assert [each.taken(0.4) for each in (sure, torn)] == [1, 2]


def test_a_query_without_any_likely_tool_gets_the_best_one() -> None:
    assert judged([0.1] * 10, [0]).taken(0.5) == 1


def test_certainty_reaches_a_recall_with_fewer_tokens_than_a_fixed_number_of_tools() -> None:
    queries = [judged([0.98, 0.01, 0.01], [0]), judged([0.4, 0.35, 0.25], [2])]

    saved, spent = adaptive(queries).tokens_at(1.0), fixed([*queries]).tokens_at(1.0)

    assert saved is not None
    assert spent is not None
    assert saved < spent


def test_a_recall_that_is_never_reached_has_no_tokens() -> None:
    assert fixed([replace(judged([0.5, 0.5], [1]), found=np.array([99.0]))]).tokens_at(0.9) is None


@settings(deadline=None)
@given(sizes=st.lists(st.integers(1, 900), min_size=1, max_size=4))
def test_no_set_outweighs_the_others(sizes: list[int]) -> None:
    one = judged([0.5, 0.5], [0])

    assert len(pooled([[one] * size for size in sizes])) <= 200 * len(sizes)
    assert len(pooled([[one] * size for size in sizes])) >= sum(min(size, 100) for size in sizes)
