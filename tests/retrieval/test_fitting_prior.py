from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from pegboard.retrieval.fusion import Calibration, Fusion
from pegboard.retrieval.fusion_fit import Example, fit

pytestmark = pytest.mark.slow

TOOLS = 12
PRIOR = Fusion(
    weights={"cosine": 1.5, "bm25": 0.5},
    calibration=Calibration(0.5, 1.0, 0.25, 0.5),
    least_share={0.5: 0.4, 0.9: 0.05},
)


def examples(count: int, telling: str, seed: int = 1) -> list[Example]:
    """Queries of one relevant tool each, which one part points to; the other is noise."""
    random = np.random.default_rng(seed)
    made = []
    for _ in range(count):
        relevant = int(random.integers(TOOLS))
        parts = {part: random.normal(size=TOOLS).astype(np.float32) for part in PRIOR.weights}
        parts[telling][relevant] += 3
        made.append(Example(parts=parts, goals=[frozenset([relevant])], clauses=1))
    return made


def distance(fusion: Fusion) -> float:
    """How far the weights are from the prior's."""
    return float(np.linalg.norm([fusion.weights[part] - PRIOR.weights[part] for part in PRIOR.weights]))


def test_few_examples_against_the_prior_move_it_little_and_many_move_it_far() -> None:
    few, many = (fit(examples(count, "bm25"), list(PRIOR.weights), prior=PRIOR) for count in (5, 500))

    assert 0 < distance(few) < distance(many)
    assert few.weights["cosine"] > 0.75
    assert many.weights["cosine"] < 0.3


def test_with_many_examples_the_prior_is_forgotten() -> None:
    seen = examples(2000, "bm25")
    free, near = fit(seen, list(PRIOR.weights)), fit(seen, list(PRIOR.weights), prior=PRIOR)

    assert near.weights == pytest.approx(free.weights, rel=0.1, abs=0.1)
    assert near.least_share == pytest.approx(free.least_share, abs=0.05)


def test_what_an_example_counts_does_not_change_what_the_prior_counts() -> None:
    seen = examples(30, "bm25")
    lighter = [Example(parts=each.parts, goals=each.goals, clauses=each.clauses, weight=1 / len(seen)) for each in seen]
    heavy, light = (fit(each, list(PRIOR.weights), prior=PRIOR) for each in (seen, lighter))

    assert light.weights == pytest.approx(heavy.weights, abs=1e-4)
    assert light.calibration(np.array([0.7, 0.3], np.float32), 1) == pytest.approx(
        heavy.calibration(np.array([0.7, 0.3], np.float32), 1), abs=1e-4
    )


def test_the_least_shares_of_few_examples_stay_near_those_of_the_prior() -> None:
    near = fit(examples(1, "bm25"), list(PRIOR.weights), prior=PRIOR)

    assert abs(near.least_share[0.9] - 0.05) < 0.05
    assert near.least_share[0.5] >= near.least_share[0.9]


@pytest.mark.requirement("C10")
def test_a_part_that_the_prior_does_not_know_starts_at_nothing() -> None:
    seen = [replace(each, parts={**each.parts, "news": np.zeros(TOOLS, np.float32)}) for each in examples(5, "bm25")]

    fitted = fit(seen, ["cosine", "bm25", "news"], prior=PRIOR)

    assert fitted.weights["news"] == 0
    assert fitted.weights["cosine"] > 0
