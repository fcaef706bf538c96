"""What the tests share: small data of their own, a clean environment, an encoder with vectors written by hand."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import settings

from kinds import kind_of
from pegboard import Catalog, Settings, Tool, build
from pegboard.board import Board
from pegboard.catalog.ingest import read_catalog
from pegboard.compose import default_parts
from pegboard.model import Floats, Server, ServerName
from pegboard.stores import MemoryEmbeddings, MemoryEvents
from pegboard.testing import FakeClock, FakeEncoder

settings.register_profile("suite", max_examples=60, deadline=None, derandomize=True)
settings.load_profile("suite")

pytest_plugins = ["chroma_server"]

DATA = Path(__file__).parent / "data"
collect_ignore_glob = ["clients/*", "servers/*"]
"""Programs that tests start, some with another Python's packages: nothing to import here."""


class GivenVectors:
    """An encoder that knows the vectors of a few texts, scaled to length 1."""

    provider = "given"
    model = "by-hand"

    def __init__(self, vectors: Mapping[str, Sequence[float]]) -> None:
        self._vectors = {
            text: np.array(vector, np.float32) / np.linalg.norm(vector) for text, vector in vectors.items()
        }
        self.dimensions = len(next(iter(vectors.values())))

    async def encode(self, texts: Sequence[str]) -> Floats:
        return np.array([self._vectors[text] for text in texts], np.float32).reshape(len(texts), self.dimensions)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Each test has the marker of what it needs (`kinds.py`); doctests need nothing."""
    for item in items:
        kind = kind_of(item.path) if DATA.parent in item.path.parents else "unit"
        item.add_marker("service" if "chroma" in getattr(item, "fixturenames", ()) else kind)


@pytest.fixture(autouse=True)
def _clean_environment(monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory) -> None:
    """No options of whoever runs the tests, and nothing kept where their own state is."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path_factory.mktemp("state")))
    for name in [name for name in os.environ if name.upper().startswith("PEGBOARD_")]:
        monkeypatch.delenv(name)


@pytest.fixture(scope="session")
def data() -> Path:
    return DATA


@pytest.fixture(scope="session")
def town() -> Catalog:
    """Four servers of two tools each."""
    return read_catalog(DATA / "catalog.jsonl")


@pytest.fixture
def events() -> MemoryEvents:
    return MemoryEvents()


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock(1_000.0)


@pytest.fixture
def encoder() -> FakeEncoder:
    return FakeEncoder()


@pytest.fixture(scope="session")
def given_vectors() -> type[GivenVectors]:
    return GivenVectors


@pytest.fixture(scope="session")
def catalog_of() -> Callable[..., Catalog]:
    """A catalog of these tools, grouped by server in order of appearance."""

    def make(*tools: Tool, descriptions: Mapping[str, str] | None = None) -> Catalog:
        groups: dict[str, list[Tool]] = {}
        for tool in tools:
            groups.setdefault(tool.server, []).append(tool)
        described = descriptions or {}
        return Catalog.build(
            (Server(name=ServerName(name), description=described.get(name, "")), of_server)
            for name, of_server in groups.items()
        )

    return make


@pytest.fixture
def board_of(encoder: FakeEncoder, events: MemoryEvents, clock: FakeClock, tmp_path: Path) -> Callable[..., Board]:
    """A board with fakes for everything outside: settings by keyword, parts replaced by `parts`."""

    def make(
        catalog: Catalog, *, parts: Mapping[str, Any] | None = None, patient: bool = True, **options: Any
    ) -> Board:
        settings = Settings(cache_dir=tmp_path, **options)
        fakes = {"encoder": encoder, "embeddings": MemoryEmbeddings(), "events": events, "clock": clock}
        return build(settings, catalog, parts=default_parts(settings, **(fakes | dict(parts or {}))), patient=patient)

    return make
