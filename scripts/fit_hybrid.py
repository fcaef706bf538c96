"""Fits what cosine, words and server count in the hybrid ranker, and writes src/pegboard/retrieval/fusion.json.

    python scripts/fit_hybrid.py --data SETS

Fitted on seal_tools, stabletoolbench, toolalpaca and nestful; every other set is left for showing the result
(`make bench-rank`). The loss is the listwise cross-entropy of the softmax over all tools of a set, each set counting
alike, so that the fitted score is a share of the relevance. At most 600 queries a set, drawn with a fixed seed.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import sys
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from scipy.optimize import minimize

from pegboard.bench.datasets import ToolSet, read_set
from pegboard.compose import default_parts
from pegboard.retrieval import CachedEncoder, Retriever
from pegboard.retrieval.fusion import z_score
from pegboard.retrieval.rankers import HybridRanker
from pegboard.settings import load_settings
from pegboard.stores import MemoryEmbeddings

SETS = ("nestful", "seal_tools", "stabletoolbench", "toolalpaca")
PARTS = ("cosine", "bm25", "server")
MOST_QUERIES, SEED = 600, 42
OUT = Path(__file__).parents[1] / "src" / "pegboard" / "retrieval" / "fusion.json"


async def features(dataset: ToolSet, encoder: CachedEncoder) -> tuple[np.ndarray, np.ndarray]:
    """z-scores of the parts, (queries, tools, parts), and which tools are relevant, (queries, tools)."""
    catalog = dataset.catalog
    ranker = HybridRanker(Retriever(catalog.tools, catalog.servers, documents=encoder, queries=encoder))
    count = len(dataset.queries)
    drawn = np.random.default_rng(SEED).choice(count, min(count, MOST_QUERIES), replace=False)
    rows, relevant = [], []
    for place in sorted(drawn):
        query = dataset.queries[place]
        scores = await ranker.score(query.text)
        rows.append(np.stack([z_score(scores.parts[part]) for part in PARTS], axis=-1))
        wanted = set(query.relevant).union(*query.any_of)
        relevant.append([tool.id in wanted for tool in catalog.tools])
    return np.array(rows), np.array(relevant)


def loss(weights: np.ndarray, data: Sequence[tuple[np.ndarray, np.ndarray]]) -> float:
    """Mean over sets of the mean negative log-probability of a relevant tool."""
    total = 0.0
    for values, relevant in data:
        scores = values @ weights
        scores -= scores.max(axis=1, keepdims=True)
        logs = scores - np.log(np.exp(scores).sum(axis=1, keepdims=True))
        total -= float(np.mean((logs * relevant).sum(axis=1) / np.maximum(relevant.sum(axis=1), 1)))
    return total / len(data)


async def main(data: Path) -> None:
    encoder_parts = default_parts(load_settings())
    encoder = CachedEncoder(encoder_parts.encoder, MemoryEmbeddings(1_000_000))
    measured = []
    for name in SETS:
        print(f"scoring {name} …", file=sys.stderr)
        measured.append(await features(read_set(data / name), encoder))
    found = minimize(loss, np.array([1.0, 0.5, 0.2]), args=(measured,), method="Nelder-Mead")
    fitted = {
        "weights": {part: round(float(weight), 4) for part, weight in zip(PARTS, found.x, strict=True)},
        "fitted_on": list(SETS),
        "loss": round(float(found.fun), 4),
        "encoder": encoder.model,
        "command": "python scripts/fit_hybrid.py",
        "seed": SEED,
    }
    OUT.write_text(json.dumps(fitted, indent=2) + "\n")
    print(json.dumps(fitted, indent=2))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument(
        "--data", type=Path, default=os.environ.get("PEGBOARD_DATA"), required="PEGBOARD_DATA" not in os.environ
    )
    asyncio.run(main(Path(parser.parse_args().data)))
