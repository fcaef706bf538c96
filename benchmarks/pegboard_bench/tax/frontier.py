"""Recall against tokens on labelled sets: each ranker from few tools to many, and Pegboard by its certainty too."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pegboard.evaluation import ranking_metrics
from pegboard.evaluation.datasets import QUERIES, ToolSet, read_set
from pegboard.evaluation.methods import Search, bm25, bm25s, ungated
from pegboard.model import ToolId
from pegboard_bench import certainty
from pegboard_bench.peers.rows import PeerRows
from pegboard_bench.shared_catalogs import by_catalog, peers_of
from pegboard_bench.tax.boards import Place, board_of
from pegboard_bench.tax.job_run import runner

SETS = (
    *("livemcp_tasks", "livemcp_steps", "livemcp_routes", "mcpverse", "mcpproxy_golden", "graphtoolcall"),
    *("metatool", "real120"),
)
MOST = 200
"""Queries of a set, evenly over it."""
DEEPEST = 40
"""Tools of a ranking that are looked at, of peers the twenty that they give."""
TOKENS = (500, 1000, 2000, 4000)
"""Where curves are compared."""
OURS = "hybrid"
RANKERS = ("hybrid_fixed", "attention", "attention_minilm", "semantic", "keyword", "bm25f", "bm25")

Points = list[list[float]]
"""(tokens, recall) of each number of tools, one a query: shape (numbers, queries, 2)."""
Doubles = NDArray[np.float64]


def sets(data: Path | None, named: Iterable[str] = ()) -> tuple[str, ...]:
    """Of `SETS` and of what is named besides, those that the folder has."""
    wanted = dict.fromkeys([*SETS, *named])
    return tuple(name for name in wanted if data is not None and (data / name / QUERIES).is_file())


def rankers(place: Place) -> tuple[str, ...]:
    """Those of `RANKERS` that can be had: one needs MiniLM as published, one the package bm25s."""
    there = {"attention_minilm": place.untuned is not None, "bm25": find_spec("bm25s") is not None}
    return tuple(name for name in RANKERS if there.get(name, True))


def dataset(name: str, data: Path) -> ToolSet:
    whole = read_set(data / name)
    return replace(whole, queries=whole.queries[:: max(1, -(-len(whole.queries) // MOST))])


def curve(name: str, method: str, place: Place) -> Mapping[str, Any]:
    """``tokens`` and ``recall``, each of shape (points, queries)."""
    return runner().run(_curve(name, method, place))


async def _curve(name: str, method: str, place: Place) -> Mapping[str, Any]:
    assert place.data is not None  # noqa: S101
    of = dataset(name, place.data)
    if method == OURS:
        board = await board_of(of.catalog, place, profile="hybrid")
        judged = await certainty.judge(of, board)
        taken = [[each.taken(share) for each in judged] for share in certainty.SHARES]
        rows = [
            ([float(each.tokens[:k].sum()) for k, each in zip(ks, judged, strict=True)],
             [each.recall(k) for k, each in zip(ks, judged, strict=True)])
            for ks in taken
        ]  # fmt: skip
        return {"tokens": [tokens for tokens, _ in rows], "recall": [recall for _, recall in rows]}
    search = await _search(of, method, place)
    rankings = {number: list(await search(query.text)) for number, query in enumerate(of.queries)}
    return by_ranking(of, rankings)


async def _search(of: ToolSet, method: str, place: Place) -> Search:
    if method == "bm25f":
        return bm25(of.catalog)
    if method == "bm25":
        return bm25s(of.catalog)
    weights = place.untuned if method.endswith("_minilm") else None
    profile = {"hybrid_fixed": "hybrid"}.get(method, method.removesuffix("_minilm"))
    return ungated(await board_of(of.catalog, place, weights=weights, profile=profile))


def by_ranking(of: ToolSet, rankings: Mapping[int, Sequence[ToolId]]) -> dict[str, Any]:
    """The curve of one to `DEEPEST` tools of each ranking. What a ranking has less of stays as it was."""
    canonical = ranking_metrics.canonical_ids(of.catalog)
    cost = dict(zip((tool.id for tool in of.catalog.tools), of.catalog.token_counts, strict=True))
    tokens, recall = [], []
    for number, ranking in rankings.items():
        query = of.queries[number]
        goals = ranking_metrics.goals(query.relevant, query.any_of, canonical)
        found = ranking_metrics.places(goals, [canonical[tool] for tool in ranking])
        sums = np.cumsum([cost[tool] for tool in ranking[:DEEPEST]], dtype=np.float64)
        last = sums[-1] if len(sums) else 0.0
        tokens.append(np.concatenate([sums, np.full(DEEPEST - len(sums), last)]))
        recall.append([ranking_metrics.recall(found, len(goals), k) for k in range(1, DEEPEST + 1)])
    return {
        "tokens": np.array(tokens).T.round(1).tolist(),
        "recall": np.array(recall).T.round(4).tolist(),
        "queries": list(rankings),
    }


def peer_curves(names: Sequence[str], place: Place, seed: int) -> Mapping[str, Any]:
    """By set and peer, of sets that share a catalog; ``missing`` says which did not run."""
    assert place.data is not None  # noqa: S101
    assert place.peers is not None  # noqa: S101
    of = [dataset(name, place.data) for name in names]
    rows = asyncio.run(peers_of(of, place.peers, lambda _done, _total: None, seed=seed))
    return {each.name: _peers(each, found) for each, found in rows}


def _peers(of: ToolSet, rows: PeerRows) -> dict[str, Any]:
    curves = {name: by_ranking(of, run.rankings) for name, run in rows.runs.items()}
    return {"curves": curves, "missing": dict(rows.missing), "versions": {n: r.version for n, r in rows.runs.items()}}


def together(names: Iterable[str], data: Path) -> list[list[str]]:
    """Sets of one catalog together: a peer indexes it once."""
    return [[each.name for each in group] for group in by_catalog([dataset(name, data) for name in names])]


def mean(of: Mapping[str, Any]) -> tuple[Doubles, Doubles]:
    """Mean tokens and mean recall of each point."""
    return np.mean(of["tokens"], axis=1), np.mean(of["recall"], axis=1)


def recall_at(of: Mapping[str, Any], tokens: float) -> Doubles:
    """The recall of each query where the curve's mean tokens are these, in proportion between two points."""
    means, _ = mean(of)
    recall = np.asarray(of["recall"], np.float64)
    if tokens >= means[-1]:
        return np.asarray(recall[-1])
    if tokens <= means[0]:
        return np.asarray(recall[0] * (tokens / means[0]))
    above = int(np.searchsorted(means, tokens))
    share = (tokens - means[above - 1]) / max(1e-9, means[above] - means[above - 1])
    return np.asarray(recall[above - 1] + share * (recall[above] - recall[above - 1]))
