from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from pegboard.retrieval.fusion import Calibration, Fusion, shipped, softmax, z_score

columns = arrays(np.float32, st.integers(1, 30), elements=st.floats(-1, 1, width=32))


@given(values=columns)
def test_z_scores_have_mean_zero_and_deviation_one_or_are_all_zero(values: np.ndarray) -> None:
    scores = z_score(values)

    assert abs(float(scores.mean())) < 1e-2
    assert not scores.any() or abs(float(scores.std()) - 1) < 1e-2


HALF = Calibration(intercept=0.0, share=1.0, best=0.0, clauses=0.0)


def fusion(**weights: float) -> Fusion:
    return Fusion(weights=weights, calibration=HALF, least_share={})


@given(values=columns, other=st.floats(-1, 1, width=32))
def test_fused_scores_are_probabilities_that_keep_the_order_of_a_single_part(values: np.ndarray, other: float) -> None:
    fused = shipped()["hybrid"].fuse({"cosine": values, "bm25": np.full_like(values, other)})

    assert fused.scale == "probability"
    assert ((fused.values >= 0) & (fused.values <= 1)).all()
    order = np.argsort(values, kind="stable")
    assert (np.diff(fused.values[order]) >= 0).all()


def test_every_shipped_part_speaks_for_a_tool_and_none_against_it() -> None:
    assert {name: set(each.weights) for name, each in shipped().items()} == {
        "hybrid": {"cosine", "clause", "bm25", "server", "name", "named"},
        "words": {"bm25", "name"},
    }
    assert all(weight > 0 for each in shipped().values() for weight in each.weights.values())


def test_one_tool_far_below_ten_thousand_others_is_no_overflow() -> None:
    values = np.full(10_000, 0.5, np.float32)
    values[7] = -1

    fused = shipped()["hybrid"].fuse({"cosine": values, "bm25": values, "server": values})

    assert np.isfinite(fused.values).all()
    assert fused.values.argmin() == 7


def test_the_parts_and_the_query_vector_are_kept() -> None:
    part, vector = np.array([0.1, 0.9], np.float32), np.ones(3, np.float32)

    fused = fusion(cosine=1.0).fuse({"cosine": part}, query_vector=vector)

    assert fused.parts["cosine"] is part
    assert fused.query_vector is vector


def test_parts_that_say_nothing_leave_all_tools_equal() -> None:
    fused = fusion(bm25=2.0).fuse({"bm25": np.zeros(4, np.float32)})

    np.testing.assert_allclose(fused.values, 0.25, atol=1e-6)


def test_a_weight_multiplies_the_z_score_of_its_part() -> None:
    first, second = np.array([1, 0, 0], np.float32), np.array([0, 1, 0], np.float32)

    fused = fusion(cosine=3.0, bm25=1.0).fuse({"cosine": first, "bm25": second})

    expected = softmax(3 * z_score(first) + z_score(second))
    np.testing.assert_allclose(fused.values, expected, rtol=1e-5)


def test_more_clauses_and_a_tool_that_stands_out_raise_the_probability_where_the_fit_says_so() -> None:
    shares = np.array([0.6, 0.3, 0.1], np.float32)

    assert (Calibration(0.0, 1.0, 0.0, 0.5)(shares, 4) > HALF(shares, 4)).all()
    assert (Calibration(0.0, 1.0, 0.5, 0.0)(shares, 1) < HALF(shares, 1)).all()


def test_shares_of_nothing_and_of_everything_have_probabilities() -> None:
    assert np.isfinite(HALF(np.array([1, 0], np.float32), 1)).all()


def test_a_fusion_reads_what_it_wrote() -> None:
    made = Fusion(weights={"bm25": 0.25}, calibration=Calibration(-1.0, 1.5, 0.25, 0.5), least_share={0.9: 0.012})

    assert Fusion.of(made.written()) == made


@pytest.mark.requirement("003.by-rank")
@given(values=st.lists(st.floats(-1, 1, width=32), min_size=1, max_size=20))
def test_without_calibration_the_order_is_the_same_and_the_scores_are_points(values: list[float]) -> None:
    parts = {name: np.array(values, np.float32) for name in ("cosine", "clause", "bm25", "server")}
    fitted = shipped()["hybrid"]

    calibrated, ranked = fitted.fuse(parts), fitted.uncalibrated().fuse(parts)

    assert (calibrated.scale, ranked.scale, ranked.least_share) == ("probability", "points", {})
    assert np.isclose(ranked.values.sum(), 1, atol=1e-4)
    assert (np.diff(calibrated.values[np.argsort(ranked.values)]) >= -1e-6).all()


def written_out(fusion: Fusion, parts: dict[str, np.ndarray]) -> np.ndarray:
    """The fusion of all tools, one step after the other."""
    total = []
    for name, values in parts.items():
        mean = values.mean(dtype=np.float64)
        centred = values - mean
        deviation = math.sqrt(float(centred @ centred) / len(values))
        flat = deviation <= abs(mean) * 1e-6
        z = np.zeros_like(values) if flat else np.asarray(centred / deviation, np.float32)
        total.append(np.float32(fusion.weights[name]) * z)
    evidence = np.asarray(np.sum(total, axis=0), np.float32)
    powers = np.exp(evidence - evidence.max())
    return fusion.calibration(np.asarray(powers / powers.sum(), np.float32), 1)


@pytest.mark.requirement("design.index-ranking")
@given(values=columns, other=columns)
def test_where_every_tool_is_scored_the_fusion_is_to_the_bit_what_it_was_without_indexes(
    values: np.ndarray, other: np.ndarray
) -> None:
    parts = {"cosine": values, "bm25": np.resize(other, values.shape)}

    fused = shipped()["hybrid"].fuse(parts)

    assert fused.values.tobytes() == written_out(shipped()["hybrid"], parts).tobytes()
    assert fused.unscored == 0


@pytest.mark.requirement("C10")
def test_a_part_that_no_weight_is_given_for_counts_nothing() -> None:
    cosine, news = np.array([0.1, 0.9, 0.3], np.float32), np.array([9, 0, 0], np.float32)

    with_news = fusion(cosine=1.0).fuse({"cosine": cosine, "news": news})

    assert with_news.values.tobytes() == fusion(cosine=1.0).fuse({"cosine": cosine}).values.tobytes()
    assert with_news.parts["news"] is news
    assert np.unique(fusion().fuse({"cosine": cosine}).values).size == 1


def test_a_part_that_is_a_share_already_counts_as_it_is() -> None:
    small, large = (fusion(name=2.0).fuse({"name": np.array(name, np.float32)}).values for name in ([0, 0.1], [0, 1]))

    assert large[1] - large[0] > 5 * (small[1] - small[0])
