from __future__ import annotations

import numpy as np
import pytest

from pegboard.model import Floats
from pegboard.retrieval.fusion import Fusion
from pegboard.retrieval.fusion_fit import Example, fit, fit_weights

TOOLS = 40


def examples(count: int, *, seed: int = 1, noise: float = 1.0) -> list[Example]:
    """Queries whose relevant tool stands out in one part; the other part says nothing."""
    random = np.random.default_rng(seed)
    made = []
    for _ in range(count):
        tool = int(random.integers(TOOLS))
        telling: Floats = random.normal(0, noise, TOOLS).astype(np.float32)
        telling[tool] += 3
        silent: Floats = random.normal(0, 1, TOOLS).astype(np.float32)
        made.append(Example(parts={"telling": telling, "silent": silent}, goals=[frozenset([tool])], clauses=1))
    return made


@pytest.fixture(scope="module")
def fitted() -> Fusion:
    return fit(examples(600), ["telling", "silent"])


def test_the_part_that_tells_counts_and_the_silent_one_does_not(fitted: Fusion) -> None:
    assert fitted.weights["telling"] > 1
    assert abs(fitted.weights["silent"]) < 0.2


def test_probabilities_come_true_on_queries_that_were_not_fitted_on(fitted: Fusion) -> None:
    said, true = [], []
    for example in examples(600, seed=2):
        values = fitted.fuse(example.parts, clauses=example.clauses).values
        best = int(values.argmax())
        said.append(float(values[best]))
        true.append(best in example.goals[0])

    assert np.mean(said) == pytest.approx(np.mean(true), abs=0.05)


def test_a_recall_is_reached_on_queries_that_were_not_fitted_on(fitted: Fusion) -> None:
    reached = []
    for example in examples(600, seed=3):
        scores = fitted.fuse(example.parts, clauses=example.clauses)
        bar = scores.share_for(0.8) * float(scores.values.sum())
        taken = set(np.flatnonzero(scores.values >= bar).tolist()) | {int(scores.values.argmax())}
        reached.append(bool(taken & example.goals[0]))

    assert np.mean(reached) == pytest.approx(0.8, abs=0.05)


def test_a_higher_recall_asks_less_of_each_tool(fitted: Fusion) -> None:
    bars = [fitted.least_share[recall] for recall in sorted(fitted.least_share)]

    assert bars == sorted(bars, reverse=True)


def test_queries_that_say_everything_are_fitted_all_the_same() -> None:
    weights = fit_weights(examples(50, noise=0.0), ["telling", "silent"])

    assert np.isfinite(list(weights.values())).all()
    assert weights["telling"] > 1


def test_a_query_counts_what_its_weight_says() -> None:
    right, wrong = examples(40), examples(40, seed=9)
    turned = [
        Example(parts={"telling": -each.parts["telling"], "silent": each.parts["silent"]}, goals=each.goals, clauses=1)
        for each in wrong
    ]
    light = [Example(parts=each.parts, goals=each.goals, clauses=1, weight=0.01) for each in turned]

    assert (
        fit_weights([*right, *light], ["telling"])["telling"]
        > 1
        > fit_weights([*right, *turned], ["telling"])["telling"]
    )


def test_without_any_relevant_tool_nothing_can_be_fitted() -> None:
    with pytest.raises(ValueError, match="relevant"):
        fit([Example(parts={"telling": np.ones(3, np.float32)}, goals=[], clauses=1)], ["telling"])
