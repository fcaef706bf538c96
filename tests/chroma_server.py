"""A real Chroma server for tests. Where none is installed they are skipped; in CI that is a failure."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from pegboard_bench.index.server import ChromaServer, chroma_server

PROGRAM = Path(os.environ.get("TEST_CHROMA", Path(__file__).parents[1] / ".demo" / "chroma" / "bin" / "chroma"))

needs_chroma = pytest.mark.skipif(
    not PROGRAM.exists(), reason=f"no Chroma server at {PROGRAM} (scripts/install_chroma.py, TEST_CHROMA)"
)


@pytest.fixture
def chroma(tmp_path: Path) -> Iterator[ChromaServer]:
    """One that a test may stop and start."""
    folder = tmp_path / "chroma"
    folder.mkdir()
    with chroma_server(PROGRAM, folder) as server:
        yield server
