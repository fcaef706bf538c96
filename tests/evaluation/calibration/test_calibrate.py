from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from pegboard.evaluation.calibration.calibrate import Refit, compare, refit
from pegboard.evaluation.calibration.labelled_queries import Judgement, LabelledQuery, folds
from pegboard.retrieval.fusion import shipped

QueriesOf = Callable[..., list[LabelledQuery]]


def fitted(queries: list[LabelledQuery]) -> Refit:
    return refit(queries, shipped()["hybrid"], fold_of=folds([each.text for each in queries], 5, 1), seed=1)


def judged(recall: float, loss: float) -> Judgement:
    return Judgement(
        recall=recall, mrr=recall, loss=loss, said=np.array([0.5], np.float32), true=np.array([recall > 0])
    )


def test_where_words_alone_tell_the_tools_a_fit_learns_to_trust_them(queries_of: QueriesOf) -> None:
    found = fitted(queries_of(80, bm25=4.0))

    assert found.held_out.better
    assert found.held_out.after["recall@5"] > found.held_out.before["recall@5"]
    assert found.fusion.weights["bm25"] > shipped()["hybrid"].weights["bm25"]


def test_thirty_queries_that_say_nothing_wreck_nothing(queries_of: QueriesOf) -> None:
    found = fitted(queries_of(30))
    before, after = shipped()["hybrid"].weights, found.fusion.weights

    assert all(abs(after[part] - before[part]) < 1.0 for part in before)
    assert np.isfinite(list(found.held_out.after.values())).all()


def test_each_query_is_judged_by_a_fit_that_has_not_seen_it(queries_of: QueriesOf) -> None:
    """Labels at random cannot be foretold, so a fit on them helps nobody it has not seen."""
    found = fitted(queries_of(60))

    assert found.held_out.after["recall@5"] < 0.4


def test_progress_is_told_a_fold_at_a_time(queries_of: QueriesOf) -> None:
    told: list[tuple[int, int]] = []
    queries = queries_of(25, bm25=2.0)
    fold_of = folds([each.text for each in queries], 5, 1)
    refit(queries, shipped()["words"], fold_of=fold_of, seed=1, progress=lambda *each: told.append(each))

    assert told == [(1, 5), (2, 5), (3, 5), (4, 5), (5, 5)]


@pytest.mark.parametrize(
    ("after", "better"),
    [
        ([judged(1.0, 1.0)] * 20, True),
        ([judged(0.0, 1.0)] + [judged(1.0, 1.0)] * 19, False),
        ([judged(1.0, 2.0)] * 20, False),
        ([judged(1.0, 1.0)] * 2 + [judged(1.0, 2.04)] * 18, False),
    ],
    ids=["surer", "finds less", "the same", "better by chance"],
)
def test_better_is_surely_less_loss_and_no_less_found(after: list[Judgement], better: bool) -> None:
    assert compare([judged(1.0, 2.0)] * 20, after, seed=1).better is better
