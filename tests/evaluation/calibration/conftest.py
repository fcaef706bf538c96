from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from pegboard.evaluation.calibration.labelled_queries import LabelledQuery
from pegboard.retrieval.fusion_fit import Example

TOOLS = 30


@pytest.fixture(scope="session")
def queries_of() -> Callable[..., list[LabelledQuery]]:
    """Queries of one relevant tool each, made at random: `telling` parts point to it, by so many deviations."""

    def make(count: int, seed: int = 7, **telling: float) -> list[LabelledQuery]:
        random = np.random.default_rng(seed)
        made = []
        for number in range(count):
            relevant = int(random.integers(TOOLS))
            parts = {
                part: random.normal(size=TOOLS).astype(np.float32) for part in ("cosine", "clause", "bm25", "server")
            }
            parts |= {"name": np.zeros(TOOLS, np.float32), "named": np.zeros(TOOLS, np.float32)}
            for part, much in telling.items():
                parts[part][relevant] += much
            example = Example(parts=parts, goals=[frozenset([relevant])], clauses=1, weight=1 / count)
            made.append(LabelledQuery(text=f"request {number}", example=example, canonical=np.arange(TOOLS)))
        return made

    return make
