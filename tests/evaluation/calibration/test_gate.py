"""The neural gate of `scripts/fit_gate.py`, on queries made at random."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

import fit_gate
from pegboard.evaluation.calibration.labelled_queries import LabelledQuery


def seen(queries: list[LabelledQuery]) -> list[fit_gate.Seen]:
    return [fit_gate.Seen(query=query, vectors=np.eye(30, dtype=np.float32)) for query in queries]


def test_both_gates_learn_which_part_tells_and_say_so_on_queries_they_have_not_seen(
    queries_of: Callable[..., list[LabelledQuery]],
) -> None:
    sets = {"made": seen(queries_of(60, bm25=4.0))}
    chance = 5 / 30

    for method in (fit_gate.linear, fit_gate.mlp(fit_gate.parts_of)):
        judged = fit_gate.held_out(sets, method)["made"]
        assert len(judged) == 60
        assert np.mean([each.recall for each in judged]) > 4 * chance


def test_a_gate_reads_the_z_scores_and_how_far_each_is_below_the_best(
    queries_of: Callable[..., list[LabelledQuery]],
) -> None:
    (query,) = seen(queries_of(1))
    read = fit_gate.parts_of(query)

    assert read.shape == (30, 12)
    np.testing.assert_allclose(read[:, :5].mean(axis=0), 0, atol=1e-5)
    np.testing.assert_allclose(read[:, :5] + read[:, 5:10], np.tile(read[:, :5].max(axis=0), (30, 1)), rtol=1e-5)


def test_what_a_gate_is_fitted_on_has_every_relevant_tool(queries_of: Callable[..., list[LabelledQuery]]) -> None:
    for query in seen(queries_of(20)):
        assert set(np.flatnonzero(query.query.example.relevant)) <= set(fit_gate.candidates(query))
