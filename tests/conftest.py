"""What the tests share: small data of their own, a clean environment, an encoder with vectors written by hand."""

from __future__ import annotations

import os
import ssl
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from itertools import count
from pathlib import Path
from typing import Any

import httpcore2
import mcp.client.session
import numpy as np
import pytest
from httpx2._config import DEFAULT_TIMEOUT_CONFIG
from hypothesis import settings

from pegboard import Catalog, Settings, Tool
from pegboard.catalog.ingest import read_catalog
from pegboard.compose import build_routing, default_parts
from pegboard.model import Floats, Server, ServerName
from pegboard.routing_board import RoutingBoard
from pegboard.stores import MemoryEmbeddings, MemoryEvents
from pegboard.testing import FakeClock, FakeEncoder

sys.dont_write_bytecode = False
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
"""Tests start hundreds of processes: each would compile every source anew."""

settings.register_profile("suite", max_examples=60, deadline=None, derandomize=True)
settings.load_profile("suite")

pytest_plugins = ["chroma_server", "collection", "pgvector_server"]

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


@pytest.fixture(scope="session")
def _state_folders(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Folders by number in one of their own: `mktemp` reads all that earlier tests left in the base folder."""
    parent = tmp_path_factory.mktemp("state")
    return (parent / str(number) for number in count())


@pytest.fixture(autouse=True)
def _clean_environment(monkeypatch: pytest.MonkeyPatch, _state_folders: Iterator[Path]) -> None:
    """No options of whoever runs the tests, and nothing kept where their own state is."""
    state = next(_state_folders)
    state.mkdir()
    monkeypatch.setenv("XDG_STATE_HOME", str(state))
    for name in [name for name in os.environ if name.upper().startswith("PEGBOARD_")]:
        monkeypatch.delenv(name)


@pytest.fixture(scope="session", autouse=True)
def _patience() -> None:
    """HTTP clients of tests wait longer than five seconds for an answer: a busy machine may need them."""
    for phase in ("connect", "read", "write", "pool"):
        setattr(DEFAULT_TIMEOUT_CONFIG, phase, 60.0)
    mcp.client.session.DISCOVER_TIMEOUT_SECONDS = 60.0


@pytest.fixture(scope="session", autouse=True)
def _certificates() -> Iterator[None]:
    """The certificates that HTTP clients trust are read once, not by each client of each test: that takes 20 ms."""
    unread = httpcore2.default_ssl_context

    @cache
    def read(trust_env: bool, *_named: str | None) -> ssl.SSLContext:
        return unread(_trust_env=trust_env)

    def context(*, _trust_env: bool = True) -> ssl.SSLContext:
        return read(_trust_env, os.environ.get("SSL_CERT_FILE"), os.environ.get("SSL_CERT_DIR"))

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("httpcore2.default_ssl_context", context)
        yield


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
def board_of(
    encoder: FakeEncoder, events: MemoryEvents, clock: FakeClock, tmp_path: Path
) -> Callable[..., RoutingBoard]:
    """A board with fakes for everything outside: settings by keyword, parts replaced by `parts`."""

    def make(
        catalog: Catalog, *, parts: Mapping[str, Any] | None = None, patient: bool = True, **options: Any
    ) -> RoutingBoard:
        settings = Settings(cache_dir=tmp_path, **options)
        fakes = {"encoder": encoder, "embeddings": MemoryEmbeddings(), "events": events, "clock": clock}
        return build_routing(
            settings, catalog, parts=default_parts(settings, **(fakes | dict(parts or {}))), patient=patient
        )

    return make
