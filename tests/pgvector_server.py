"""A real PostgreSQL with pgvector for tests. Where its package is not installed they are skipped; in CI that is a
failure."""

from __future__ import annotations

from collections.abc import Iterator
from importlib.util import find_spec

import pytest

from pegboard_bench.index.postgres import PACKAGE, PostgresServer, postgres_server, programs

PROGRAMS = programs()

needs_pgvector = pytest.mark.skipif(PROGRAMS is None, reason=f"the package {PACKAGE} is not installed")
needs_qdrant = pytest.mark.skipif(find_spec("qdrant_client") is None, reason="qdrant-client is not installed")


@pytest.fixture
def pgvector() -> Iterator[PostgresServer]:
    """One that a test may stop and start."""
    assert PROGRAMS is not None
    with postgres_server(PROGRAMS) as server:
        yield server
