"""Measures what a threshold lets through with the encoder of the package.

    python scripts/fit_threshold.py --data SETS

It writes src/pegboard/retrieval/thresholds.json. The cosines are those of the profile `semantic`: the query with the
whole definition, every tool at or above θ. On the sets that the fusion is fitted on, of which the benchmark scores
none; each set counts the same. What is proposed is the θ of the best mean F1, as `pegboard calibrate` takes it for
`attention`.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fit_fusion import prepared
from pegboard.compose import build_routing, default_parts
from pegboard.evaluation.calibration.labelled_queries import label
from pegboard.evaluation.calibration.sweep import served
from pegboard.evaluation.datasets import ToolSet
from pegboard.retrieval import OnnxEncoder
from pegboard.settings import load_settings

OUT = Path(__file__).parents[1] / "src" / "pegboard" / "retrieval" / "thresholds.json"
THETAS = tuple(round(0.10 + 0.02 * step, 2) for step in range(41))
"""0.10, 0.12, … 0.90."""


async def measured(of_set: ToolSet, cache: Path) -> NDArray[np.float64]:
    """Means over the queries of a set, shape (thetas, 4): precision, recall, F1, number of tools."""
    settings = load_settings(profile="semantic", cache_dir=cache)
    board = build_routing(settings, of_set.catalog, parts=default_parts(settings, encoder=OnnxEncoder()))
    await board.warm(lambda done, total: say(f"{of_set.name}: {done} of {total} texts") if done % 512 == 0 else None)
    queries = await label(board, of_set.queries)
    return np.array([[served(query, theta, None) for theta in THETAS] for query in queries]).mean(axis=0)


async def fitted(data: Path, cache: Path) -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as work:
        chosen = list(prepared(data, Path(work)))
    by_set = {of_set.name: await measured(of_set, cache) for of_set in chosen}
    means = np.mean(list(by_set.values()), axis=0)
    return {
        "profile": "semantic",
        "best": THETAS[int(np.argmax(means[:, 2]))],
        "curve": {
            f"{theta:.2f}": {
                name: round(float(value), 4)
                for name, value in zip(("precision", "recall", "f1", "tools"), row, strict=True)
            }
            for theta, row in zip(THETAS, means, strict=True)
        },
        "best_of": {name: THETAS[int(np.argmax(of_set[:, 2]))] for name, of_set in by_set.items()},
        "fitted_on": {of_set.name: len(of_set.queries) for of_set in chosen},
        "encoder": OnnxEncoder().model,
        "command": "python scripts/fit_threshold.py",
    }


def say(message: str) -> None:
    print(f"fit_threshold: {message}", file=sys.stderr, flush=True)


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    data = os.environ.get("PEGBOARD_DATA")
    parser.add_argument("--data", type=Path, default=data, required=data is None, help="sets; default: PEGBOARD_DATA")
    parser.add_argument("--cache", type=Path, help="folder for embeddings; a second run then takes seconds")
    parser.add_argument("--out", type=Path, default=OUT)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        result = asyncio.run(fitted(args.data, args.cache or Path(temporary)))
    args.out.write_text(json.dumps(result, indent=2) + "\n", encoding="utf-8")
    say(f"written: {args.out}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
