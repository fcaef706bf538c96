from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binomtest

from pegboard.proportions import paired_difference, wilson

counts = st.integers(0, 300)


@given(hits=counts, misses=counts)
def test_the_score_interval_is_that_of_scipy(hits: int, misses: int) -> None:
    share = wilson(hits, hits + misses)

    if hits + misses == 0:
        assert share is None
        return
    assert share is not None
    theirs = binomtest(hits, hits + misses).proportion_ci(method="wilson")
    assert (share.low, share.high) == pytest.approx((theirs.low, theirs.high), abs=1e-12)


@given(both=counts, first=counts, second=counts, neither=counts)
def test_a_paired_difference_lies_in_its_interval_and_turns_around_with_the_pair(
    both: int, first: int, second: int, neither: int
) -> None:
    there, back = paired_difference(both, first, second, neither), paired_difference(both, second, first, neither)

    if there is None or back is None:
        assert both + first + second + neither == 0
        return
    assert -1 - 1e-9 <= there.low <= there.value <= there.high <= 1 + 1e-9
    assert (there.value, there.low, there.high) == pytest.approx((-back.value, -back.high, -back.low))


@pytest.mark.parametrize(("both", "first", "second"), [(0.85, 0.05, 0.05), (0.9, 0.02, 0.06), (0.5, 0.1, 0.2)])
def test_the_interval_of_a_paired_difference_holds_the_truth_95_times_in_100(
    both: float, first: float, second: float
) -> None:
    drawn = np.random.default_rng(7).multinomial(200, [both, first, second, 1 - both - first - second], 2000)
    shares = [paired_difference(*map(int, table)) for table in drawn]

    held = [share.low <= second - first <= share.high for share in shares if share is not None]

    assert 0.93 <= np.mean(held) <= 0.98
