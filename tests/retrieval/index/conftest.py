"""Each test of the contract runs over every index. Servers are started once; each index is a collection or a table."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any
from uuid import uuid4

import pytest

from chroma_server import PROGRAM, needs_chroma
from pegboard.extras import required
from pegboard.protocols import VectorIndex
from pegboard.retrieval.index.bit_index import CompressedIndex
from pegboard.retrieval.index.chroma import ChromaIndex
from pegboard.retrieval.index.exact import ExactVectors
from pegboard.retrieval.index.faiss import FaissIndex
from pegboard.retrieval.index.pgvector import PgvectorDatabase, PgvectorIndex
from pegboard.retrieval.index.qdrant import QdrantIndex
from pegboard_bench.index.postgres import postgres_server
from pegboard_bench.index.server import chroma_server
from pgvector_server import PROGRAMS, needs_pgvector, needs_qdrant

D = 8

MakeIndex = Callable[[], VectorIndex]


@pytest.fixture(scope="session")
def chroma_url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with chroma_server(PROGRAM, tmp_path_factory.mktemp("chroma")) as server:
        yield server.url


@pytest.fixture(scope="session")
def pgvector_url() -> Iterator[str]:
    assert PROGRAMS is not None
    with postgres_server(PROGRAMS) as server:
        yield server.url


@pytest.fixture(scope="session")
def pgvector_database(pgvector_url: str) -> PgvectorDatabase:
    return PgvectorDatabase(pgvector_url, timeout=60)


@pytest.fixture
def qdrant_client() -> Any:
    """The engine in process of Qdrant's client."""
    return required("qdrant_client", "qdrant").QdrantClient(":memory:")


@pytest.fixture(
    params=[
        "exact",
        "faiss",
        "faiss lists",
        "compressed",
        "compressed lists",
        pytest.param("chroma", marks=needs_chroma),
        pytest.param("pgvector", marks=needs_pgvector),
        pytest.param("pgvector graph", marks=needs_pgvector),
        pytest.param("qdrant", marks=needs_qdrant),
    ]
)
def make_index(request: pytest.FixtureRequest) -> MakeIndex:
    """A new index each time, of 8 dimensions. `lists` and `graph` are approximate from the third vector on."""
    if request.param == "chroma":
        url = request.getfixturevalue("chroma_url")
        return lambda: ChromaIndex(url, f"test-{uuid4().hex}", timeout=60)
    if request.param == "qdrant":
        client = request.getfixturevalue("qdrant_client")
        return lambda: QdrantIndex(client, f"test-{uuid4().hex}", timeout=60)
    if request.param.startswith("pgvector"):
        database = request.getfixturevalue("pgvector_database")
        above = 2 if request.param == "pgvector graph" else 20_000
        return lambda: PgvectorIndex(database, [uuid4().hex], approximate_above=above)
    made: dict[str, MakeIndex] = {
        "exact": lambda: ExactVectors(D),
        "faiss": lambda: FaissIndex(D),
        "faiss lists": lambda: FaissIndex(D, approximate_above=2, probes=48),
        "compressed": lambda: CompressedIndex(D),
        "compressed lists": lambda: CompressedIndex(D, exact_up_to=2),
    }
    return made[request.param]
