from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from pegboard.retrieval.fusion import fuse, z_score

columns = arrays(np.float32, st.integers(1, 30), elements=st.floats(-1, 1, width=32))


@given(values=columns)
def test_z_scores_have_mean_zero_and_deviation_one_or_are_all_zero(values: np.ndarray) -> None:
    scores = z_score(values)

    assert abs(float(scores.mean())) < 1e-2
    assert not scores.any() or abs(float(scores.std()) - 1) < 1e-2


@given(values=columns, other=st.floats(-1, 1, width=32))
def test_fused_scores_are_probabilities_that_keep_the_order_of_a_single_part(values: np.ndarray, other: float) -> None:
    fused = fuse({"cosine": values, "bm25": np.full_like(values, other)})

    assert fused.scale == "probability"
    assert ((fused.values >= 0) & (fused.values <= 1)).all()
    order = np.argsort(values, kind="stable")
    assert (np.diff(fused.values[order]) >= 0).all()


def test_one_tool_far_below_ten_thousand_others_is_no_overflow() -> None:
    values = np.full(10_000, 0.5, np.float32)
    values[7] = -1

    fused = fuse({"cosine": values, "bm25": values, "server": values})

    assert np.isfinite(fused.values).all()
    assert fused.values.argmin() == 7


def test_the_parts_and_the_query_vector_are_kept() -> None:
    part, vector = np.array([0.1, 0.9], np.float32), np.ones(3, np.float32)

    fused = fuse({"cosine": part}, vector)

    assert fused.parts["cosine"] is part
    assert fused.query_vector is vector


def test_parts_that_say_nothing_leave_all_tools_equal() -> None:
    fused = fuse({"bm25": np.zeros(4, np.float32)})

    assert len(set(fused.values.tolist())) == 1
