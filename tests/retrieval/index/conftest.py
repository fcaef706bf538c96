"""Each test of the contract runs over every index. A Chroma server is started once; each index is a collection."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from uuid import uuid4

import pytest

from chroma_server import PROGRAM, needs_chroma
from pegboard.protocols import VectorIndex
from pegboard.retrieval.index.bit_index import CompressedIndex
from pegboard.retrieval.index.chroma import ChromaIndex
from pegboard.retrieval.index.exact import ExactVectors
from pegboard.retrieval.index.faiss import FaissIndex
from pegboard_bench.index.server import chroma_server

D = 8

MakeIndex = Callable[[], VectorIndex]


@pytest.fixture(scope="session")
def chroma_url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with chroma_server(PROGRAM, tmp_path_factory.mktemp("chroma")) as server:
        yield server.url


@pytest.fixture(
    params=[
        "exact",
        "faiss",
        "faiss lists",
        "compressed",
        "compressed lists",
        pytest.param("chroma", marks=needs_chroma),
    ]
)
def make_index(request: pytest.FixtureRequest) -> MakeIndex:
    """A new index each time, of 8 dimensions. `faiss lists` is approximate from the third vector on."""
    if request.param == "chroma":
        url = request.getfixturevalue("chroma_url")
        return lambda: ChromaIndex(url, f"test-{uuid4().hex}", timeout=10)
    made: dict[str, MakeIndex] = {
        "exact": lambda: ExactVectors(D),
        "faiss": lambda: FaissIndex(D),
        "faiss lists": lambda: FaissIndex(D, approximate_above=2, probes=48),
        "compressed": lambda: CompressedIndex(D),
        "compressed lists": lambda: CompressedIndex(D, exact_up_to=2),
    }
    return made[request.param]
