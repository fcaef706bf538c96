"""The gate that seed 000 section 8 proposes, a 2-layer MLP, beside the linear fusion, and what `pegboard calibrate`
makes of each scored set's own queries; writes bench/results/gate.json.

    python scripts/fit_gate.py --data SETS

`mlp_gate` reads what the fusion reads: the z-scores of the parts. `mlp_embeddings` reads what the seed says, the
query's vector and the tool's put together. Both and the fusion are fitted on the sets of `fit_fusion.py`: on four
fifths of their queries to be judged on the rest, and on all of them to be judged on the scored sets. Nothing of it
ships.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from fit_fusion import MODELS, SEED, prepared
from pegboard.compose import build_routing, default_parts
from pegboard.evaluation import ranking_metrics
from pegboard.evaluation.calibration.calibrate import Comparison, refit
from pegboard.evaluation.calibration.labelled_queries import (
    Judgement,
    LabelledQuery,
    calibration_error,
    folds,
    judge,
    label,
)
from pegboard.evaluation.datasets import ToolSet, read_set
from pegboard.model import Floats
from pegboard.retrieval import OnnxEncoder
from pegboard.retrieval.fusion import shipped, z_score
from pegboard.retrieval.fusion_fit import DEPTH, fit
from pegboard.settings import load_settings
from pegboard_bench import results
from pegboard_bench.page import write_page

PARTS = MODELS["hybrid"]
SCORED = ("livemcp_tasks", "livemcp_steps", "mcpverse", "graphtoolcall", "metatool", "mcpproxy_golden")
MOST = 400
"""Queries of a scored set."""
FOLDS = 5
HIDDEN = 32
"""Units between the two layers of weights."""
OUT = Path(__file__).parents[1] / "bench" / "results"


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """A query, and the vectors of the tools it is ranked over, shape (n, d)."""

    query: LabelledQuery
    vectors: Floats


Score = Callable[[Seen], Floats]
"""A probability a tool, shape (n,)."""
Read = Callable[[Seen], Floats]
"""What a gate reads of each tool, shape (n, features)."""


def parts_of(seen: Seen) -> Floats:
    """z-scores, how far each is below the best, and what all tools of a query share."""
    example = seen.query.example
    scores = np.stack([z_score(example.parts[part]) for part in PARTS], axis=1)
    shared = np.broadcast_to(np.log([example.clauses, len(scores)]).astype(np.float32), (len(scores), 2))
    return np.concatenate([scores, scores.max(axis=0) - scores, shared], axis=1)


def vectors_of(seen: Seen) -> Floats:
    """e_q ⊕ e_t (seed 000 section 8)."""
    return np.concatenate([np.broadcast_to(seen.query.query_vector, seen.vectors.shape), seen.vectors], axis=1)


def linear(examples: Sequence[Seen]) -> Score:
    fusion = fit([seen.query.example for seen in examples], PARTS)
    return lambda seen: fusion.fuse(seen.query.example.parts, clauses=seen.query.example.clauses).values


def mlp(read: Read) -> Callable[[Sequence[Seen]], Score]:
    """A gate on the relevant tools and the best others of each query, each set counting the same."""

    def fitted(examples: Sequence[Seen]) -> Score:
        rows = [candidates(seen) for seen in examples]
        x = np.concatenate([read(seen)[chosen] for seen, chosen in zip(examples, rows, strict=True)])
        y = np.concatenate([seen.query.example.relevant[chosen] for seen, chosen in zip(examples, rows, strict=True)])
        counts = [np.full(len(chosen), seen.query.example.weight) for seen, chosen in zip(examples, rows, strict=True)]
        weight = np.concatenate(counts)
        gate = make_pipeline(
            StandardScaler(), MLPClassifier((HIDDEN,), early_stopping=True, max_iter=100, random_state=SEED)
        )
        gate.fit(x, y, mlpclassifier__sample_weight=weight / weight.mean())
        return lambda seen: np.asarray(gate.predict_proba(read(seen))[:, 1], np.float32)

    return fitted


def candidates(seen: Seen) -> np.ndarray:
    """Places of the relevant tools and of the `DEPTH` best by the sum of the z-scores."""
    example = seen.query.example
    total = np.sum([z_score(example.parts[part]) for part in PARTS], axis=0)
    return np.union1d(np.argsort(-total, kind="stable")[:DEPTH], np.flatnonzero(example.relevant))


METHODS: Mapping[str, Callable[[Sequence[Seen]], Score]] = {
    "linear": linear,
    "mlp_gate": mlp(parts_of),
    "mlp_embeddings": mlp(vectors_of),
}


async def seen_of(dataset: ToolSet, cache: Path) -> list[Seen]:
    settings = load_settings(profile="hybrid", cache_dir=cache)
    board = build_routing(settings, dataset.catalog, parts=default_parts(settings, encoder=OnnxEncoder()))
    await board.warm()
    vectors = await board.vectors()
    say(f"{dataset.name}: {len(dataset.catalog)} tools, {len(dataset.queries)} queries")
    return [Seen(query=query, vectors=vectors) for query in await label(board, dataset.queries)]


def held_out(
    sets: Mapping[str, Sequence[Seen]], method: Callable[[Sequence[Seen]], Score]
) -> dict[str, list[Judgement]]:
    """Each query of the fitting sets under a scoring that was fitted without it."""
    fold_of = {name: folds([seen.query.text for seen in queries], FOLDS, SEED) for name, queries in sets.items()}
    found: dict[str, list[Judgement]] = {name: [] for name in sets}
    for fold in range(FOLDS):
        score = method(
            [each for name in sets for each, own in zip(sets[name], fold_of[name], strict=True) if own != fold]
        )
        for name in sets:
            mine = (each for each, own in zip(sets[name], fold_of[name], strict=True) if own == fold)
            found[name] += [judge(each.query, score(each)) for each in mine]
    return found


def figures(method: str, judged: Mapping[str, Sequence[Judgement]]) -> dict[str, float]:
    found = {}
    for name, queries in judged.items():
        found[f"recall@5/{name}/{method}"] = float(np.mean([each.recall for each in queries]))
        found[f"mrr/{name}/{method}"] = float(np.mean([each.mrr for each in queries]))
        found[f"ece/{name}/{method}"] = calibration_error(queries)
    return found


def calibrated(scored: Mapping[str, Sequence[Seen]]) -> dict[str, Comparison]:
    """What `pegboard calibrate` makes of each scored set's own queries, on those that a fit has not seen."""
    found = {}
    for name, queries in scored.items():
        asked = [seen.query for seen in queries]
        fold_of = folds([query.text for query in asked], FOLDS, SEED)
        found[name] = refit(asked, shipped()["hybrid"], fold_of=fold_of, seed=SEED).held_out
    return found


def gains(judged: Mapping[str, Mapping[str, Sequence[Judgement]]]) -> dict[str, dict[str, list[float]]]:
    """Recall@5 of each gate minus that of the fusion, query by query: mean and 95% interval by set."""
    found: dict[str, dict[str, list[float]]] = {}
    for method in METHODS:
        for name, queries in judged[method].items():
            differences = [a.recall - b.recall for a, b in zip(queries, judged["linear"][name], strict=True)]
            interval = ranking_metrics.bootstrap(differences, np.random.default_rng(SEED))
            found.setdefault(name, {})[method] = rounded(interval)
    return found


def rounded(interval: ranking_metrics.Interval) -> list[float]:
    return [round(each, 4) for each in (interval.mean, interval.low, interval.high)]


async def measured(data: Path, cache: Path) -> tuple[dict[str, float], dict[str, Any]]:
    with tempfile.TemporaryDirectory() as work:
        fitting = {each.name: await seen_of(each, cache) for each in prepared(data, Path(work))}
    chosen = [read_set(data / name) for name in SCORED]
    scored = {each.name: await seen_of(replace(each, queries=each.queries[:MOST]), cache) for each in chosen}
    every = [seen for queries in fitting.values() for seen in queries]
    judged: dict[str, dict[str, list[Judgement]]] = {}
    for method, fitted in METHODS.items():
        say(f"fitting {method}")
        score = fitted(every)
        outside = {name: [judge(each.query, score(each)) for each in queries] for name, queries in scored.items()}
        judged[method] = held_out(fitting, fitted) | outside
    tables: dict[str, Any] = {
        "calibrated": {},
        "held_out": {name: len(queries) for name, queries in fitting.items()},
        "scored": {name: len(queries) for name, queries in scored.items()},
        "recall@5_gains_over_linear_95": gains(judged),
        "hidden_units": HIDDEN,
        "encoder": OnnxEncoder().model,
    }
    found = {name: value for method, sets in judged.items() for name, value in figures(method, sets).items()}
    for name, compared in calibrated(scored).items():
        for method, values in (("shipped", compared.before), ("calibrated", compared.after)):
            found |= {f"{metric}/{name}/{method}": value for metric, value in values.items()}
        tables["calibrated"][name] = {"kept": "new" if compared.better else "old"} | {
            metric: rounded(gain) for metric, gain in compared.gains.items()
        }
    return found, tables


def say(message: str) -> None:
    print(f"fit_gate: {message}", file=sys.stderr, flush=True)


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    data = os.environ.get("PEGBOARD_DATA")
    parser.add_argument("--data", type=Path, default=data, help="sets; default: PEGBOARD_DATA")
    parser.add_argument("--cache", type=Path, help="folder for embeddings; a second run then takes minutes less")
    parser.add_argument("--out", type=Path, default=OUT, help="folder for gate.json")
    parser.add_argument("--page", type=Path, help="write the results as a page to this file too")
    args = parser.parse_args()
    if args.data is None:
        say("not measured, for want of data: set PEGBOARD_DATA to the folder of the sets")
        return 0
    with tempfile.TemporaryDirectory() as temporary:
        found, tables = asyncio.run(measured(args.data, args.cache or Path(temporary)))
    path = results.write("gate", command="make bench-gate", seed=SEED, figures=found, tables=tables, folder=args.out)
    say(f"written: {path}")
    if args.page is not None:
        write_page(args.page, args.out)
        say(f"written: {args.page}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
