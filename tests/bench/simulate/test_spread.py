from __future__ import annotations

import numpy as np
import pytest

from pegboard_bench.simulate.spread import Resampled, change, interval

RANDOM = np.random.default_rng(1)


def test_a_figure_lies_within_its_interval_and_is_what_all_tasks_give() -> None:
    values = RANDOM.random((6, 40))
    found = interval(Resampled(6, 40, 1).ratios(values, np.ones_like(values)))

    assert found.mean == pytest.approx(values.mean())
    assert found.low < found.mean < found.high


def test_worlds_that_differ_widen_an_interval() -> None:
    alike = RANDOM.random((6, 40))
    apart = alike + np.arange(6)[:, None]
    resampled = Resampled(6, 40, 1)
    ones = np.ones_like(alike)
    narrow, wide = interval(resampled.ratios(alike, ones)), interval(resampled.ratios(apart, ones))

    assert wide.high - wide.low > 3 * (narrow.high - narrow.low)


def test_what_is_compared_in_pairs_is_known_better_than_each_of_both() -> None:
    values = RANDOM.random((6, 40))
    resampled, ones = Resampled(6, 40, 1), np.ones_like(values)
    ours, theirs = resampled.ratios(values + 0.1, ones), resampled.ratios(values, ones)
    difference = interval(ours - theirs)

    assert (difference.low, difference.high) == pytest.approx((0.1, 0.1))
    assert interval(change(ours, theirs)).mean == pytest.approx(0.1 / values.mean())


def test_where_there_is_nothing_to_divide_by_a_ratio_is_zero() -> None:
    nothing = np.zeros((2, 3))

    assert interval(Resampled(2, 3, 1).ratios(nothing, nothing)).mean == 0
