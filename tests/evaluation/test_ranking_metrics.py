from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from pegboard.evaluation import ranking_metrics
from pegboard.evaluation.datasets import ToolSet, read_set
from pegboard.model import ToolId


@pytest.fixture(scope="module")
def small_set() -> ToolSet:
    return read_set(Path(__file__).parents[1] / "data" / "cli" / "small_set")


def test_means_are_those_of_the_scorer_that_the_sets_come_with(small_set: ToolSet, data: Path) -> None:
    """`expected.json` is by that scorer: copies, any-of groups, repeated tools, an empty and a missing ranking."""
    folder = data / "cli" / "small_set"
    rows = map(json.loads, (folder / "run.jsonl").read_text().splitlines())
    rankings = {row["id"]: [ToolId(*tool) for tool in row["ranking"]] for row in rows}
    expected = json.loads((folder / "expected.json").read_text())
    canonical = ranking_metrics.canonical_ids(small_set.catalog)
    scores = [
        ranking_metrics.score(
            ranking_metrics.goals(query.relevant, query.any_of, canonical), rankings.get(query.id, []), canonical
        )
        for query in small_set.queries
    ]

    assert len(scores) == expected.pop("queries")
    assert {name: np.mean([score[name] for score in scores]) for name in expected} == pytest.approx(expected)


def test_copies_of_a_tool_are_one_and_others_of_its_name_are_not(small_set: ToolSet) -> None:
    canonical = ranking_metrics.canonical_ids(small_set.catalog)

    assert canonical[ToolId("files", "read_file")] == canonical[ToolId("cloud", "read_file")]
    assert len(set(canonical.values())) == len(small_set.catalog) - 1


def test_a_group_stands_for_the_relevant_tool_it_holds() -> None:
    canonical = {ToolId("s", name): number for number, name in enumerate("abcd")}
    a, b, c, d = canonical

    assert ranking_metrics.goals([a, b], [[b, c]], canonical) == {frozenset([0]), frozenset([1, 2])}
    assert ranking_metrics.goals([a], [[c, d]], canonical) == {frozenset([0]), frozenset([2, 3])}


def test_nothing_found_scores_nothing() -> None:
    assert ranking_metrics.score(frozenset([frozenset([7])]), [], {}) == {
        "recall@1": 0,
        "recall@3": 0,
        "recall@5": 0,
        "recall@10": 0,
        "mrr": 0,
        "ndcg@5": 0,
        "full@10": 0,
    }


def test_a_bootstrap_interval_holds_the_mean_and_narrows_with_more_queries() -> None:
    random = np.random.default_rng(7)
    few = ranking_metrics.bootstrap([0, 1] * 10, random)
    many = ranking_metrics.bootstrap([0, 1] * 500, random)

    assert few.mean == many.mean == 0.5
    assert few.low < many.low < 0.5 < many.high < few.high


def test_many_values_are_drawn_some_at_a_time_and_the_interval_is_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    values = np.random.default_rng(1).normal(size=999).tolist()
    at_once = ranking_metrics.bootstrap(values, np.random.default_rng(2))

    monkeypatch.setattr(ranking_metrics, "AT_ONCE", 5000)

    assert ranking_metrics.bootstrap(values, np.random.default_rng(2)) == at_once


def test_the_interval_of_equal_values_is_a_point() -> None:
    interval = ranking_metrics.bootstrap([0.25] * 8, np.random.default_rng(0))

    assert (interval.low, interval.high) == (0.25, 0.25)


def test_the_interval_is_near_the_one_of_the_normal_distribution() -> None:
    values = np.random.default_rng(1).normal(3, 2, 400)
    interval = ranking_metrics.bootstrap(values.tolist(), np.random.default_rng(2))
    half = 1.96 * values.std() / np.sqrt(len(values))

    assert interval.high - interval.low == pytest.approx(2 * half, rel=0.1)
