from __future__ import annotations

import numpy as np
import pytest

from chroma_server import PROGRAM, needs_chroma
from pegboard import ToolId
from pegboard_bench.index.measure import Measured, filters, measured_apart
from pegboard_bench.index.vectors import Vectors, synthesised
from pegboard_bench.results import check
from pgvector_server import needs_pgvector, needs_qdrant


@pytest.fixture(scope="module")
def vectors() -> Vectors:
    rows = np.random.default_rng(0).normal(size=(40, 64)).astype(np.float32)
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    ids = [ToolId(f"server {number % 30}", f"tool {number}") for number in range(40)]
    return synthesised(Vectors(ids=ids, rows=rows, queries=rows[:5]), 400, seed=1)


@pytest.mark.parametrize(
    "backend",
    [
        "exact",
        "faiss",
        pytest.param("chroma", marks=needs_chroma),
        pytest.param("pgvector", marks=needs_pgvector),
        pytest.param("qdrant", marks=needs_qdrant),
    ],
)
def test_an_index_is_measured_in_a_process_of_its_own(backend: str, vectors: Vectors) -> None:
    found: Measured = measured_apart(backend, vectors, PROGRAM)

    assert found.ms.keys() == found.recall.keys() == filters(vectors.ids).keys()
    assert all(len(times) == len(vectors.queries) for times in found.ms.values())
    assert min(found.recall.values()) >= 0.98
    check({f"recall@10/{name}": value for name, value in found.recall.items()})
