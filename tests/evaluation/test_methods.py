from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from pegboard import Catalog
from pegboard.compose import default_parts
from pegboard.evaluation import methods
from pegboard.evaluation.datasets import ToolSet, read_set
from pegboard.model import ToolId
from pegboard.routing_board import RoutingBoard
from pegboard.settings import load_settings
from pegboard.stores import MemoryEmbeddings
from pegboard.testing import FakeEncoder
from pegboard_bench import quality


@pytest.fixture(scope="module")
def small_set() -> ToolSet:
    return read_set(Path(__file__).parents[1] / "data" / "cli" / "small_set")


@pytest.fixture
async def searches(small_set: ToolSet) -> dict[str, methods.Search]:
    settings = load_settings()
    parts = default_parts(settings, encoder=FakeEncoder(), embeddings=MemoryEmbeddings())
    return await methods.searches(small_set.catalog, settings, parts)


async def test_every_method_finds_what_shares_its_words(searches: dict[str, methods.Search]) -> None:
    own = {"bm25f", "attention_ungated", "attention", "semantic", "keyword", "hybrid", "hybrid_with_one_text"}
    without = {f"hybrid_without_{part}" for part in ("cosine", "clause", "bm25", "server", "name", "named")}
    assert set(searches) == {"bm25"} | own | without
    for search in searches.values():
        assert (await search("open a new issue in a repository"))[0] == ToolId("code", "create_issue")


async def test_ungated_methods_rank_every_tool_once(searches: dict[str, methods.Search], small_set: ToolSet) -> None:
    for method in ("bm25", "bm25f", "attention_ungated", "hybrid", "hybrid_without_clause"):
        assert sorted(await searches[method]("weather in a city")) == sorted(t.id for t in small_set.catalog.tools)


async def test_a_query_of_unknown_words_is_ranked_all_the_same(searches: dict[str, methods.Search]) -> None:
    for method in ("bm25", "bm25f"):
        assert len(await searches[method]("xyzzy")) == 12


async def test_gated_methods_are_the_active_tools_best_first(
    board_of: Callable[..., RoutingBoard], small_set: ToolSet
) -> None:
    board = board_of(small_set.catalog, profile="keyword", k=3, always_available=("cloud/share_file",))
    decision = await board.route("list the issues")

    chosen = methods.chosen(decision)

    assert set(chosen) == set(decision.active)
    assert ToolId("code", "list_issues") in chosen[:2]


async def test_active_tools_that_no_candidate_shows_come_last(
    board_of: Callable[..., RoutingBoard], town: Catalog
) -> None:
    decision = await board_of(town).route("x y z")

    assert set(methods.chosen(decision)) == set(decision.active)


async def test_quality_has_every_metric_and_the_gain_over_the_best_of_the_others(
    searches: dict[str, methods.Search], small_set: ToolSet
) -> None:
    reports: list[tuple[int, int]] = []
    rows = await quality.measure(small_set, searches, lambda done, total: reports.append((done, total)))
    found = quality.summarize("small_set", rows, seed=1)
    figures = found.figures()

    assert reports[-1] == (7, 7)
    metrics = ("recall@1", "recall@3", "recall@5", "recall@10", "mrr", "ndcg@5", "full@10")
    assert {f"{metric}/small_set/hybrid" for metric in metrics} <= set(figures)
    best = max(figures["recall@5/small_set/bm25"], figures["recall@5/small_set/bm25f"])
    assert set(found.gains) == {"bm25", "bm25f"}
    assert figures["recall@5_gain/small_set/hybrid"] == pytest.approx(figures["recall@5/small_set/hybrid"] - best)
    assert figures["recall@5_gain_low/small_set/hybrid"] <= figures["recall@5_gain/small_set/hybrid"]


def row(*values: float) -> dict[int, dict[str, float]]:
    return {number: {"recall@5": value} for number, value in enumerate(values)}


def test_the_gain_is_paired_query_by_query() -> None:
    rows = {"bm25": row(0, 1, 0, 1), "minilm": row(0, 0, 0, 0), "hybrid": row(0.5, 1, 0.5, 1)}

    found = quality.summarize("s", rows, seed=3)

    assert found.rival == "bm25"
    assert found.gain.mean == 0.25
    assert found.gain.low >= 0
    assert np.isclose(found.means["recall@5", "hybrid"].mean, 0.75)


def test_a_peer_that_saw_a_sample_is_compared_on_that_sample() -> None:
    rows = {"slow": {1: {"recall@5": 1.0}, 3: {"recall@5": 0.0}}, "hybrid": row(0, 1, 0, 1)}

    found = quality.summarize("s", rows, seed=3)

    assert found.gain.mean == 0.5
    assert found.asked == {"slow": 2}
