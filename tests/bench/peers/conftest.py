"""Peers that the tests write themselves, run by this Python as if it were an environment of theirs."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from textwrap import dedent

import pytest

from pegboard_bench.peers.table import ADAPTERS, Peer

WORD_COUNTER = f"""
    import sys

    sys.path.append({str(ADAPTERS.parent)!r})

    from adapters.protocol import serve


    def build(tools, k, variant):
        def shared(text, tool):
            return len(set(text.split()) & set(tool.description.split()))

        def search(text):
            print("searching", text)
            best = sorted(tools, key=lambda tool: -shared(text, tool))[:k]
            return [tool.uid for tool in best for _ in range(2)]

        return search


    serve("fake-peer", build)
"""
"""Ranks by shared words, names every tool twice, and prints where only answers belong."""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Where the environment `fake` is."""
    python = Peer(name="fake", title="", environment="fake", adapter=ADAPTERS).python(tmp_path / "peers")
    python.parent.mkdir(parents=True)
    python.symlink_to(sys.executable)
    return tmp_path / "peers"


@pytest.fixture
def fake(tmp_path: Path) -> Callable[..., Peer]:
    """A peer that is one script."""

    def write(script: str = WORD_COUNTER, *, name: str = "fake", slow: bool = False) -> Peer:
        adapter = tmp_path / "fakes" / f"{name}.py"
        adapter.parent.mkdir(exist_ok=True)
        metadata = tmp_path / "fake_peer-1.0.dist-info" / "METADATA"
        metadata.parent.mkdir(exist_ok=True)
        metadata.write_text("Metadata-Version: 2.1\nName: fake-peer\nVersion: 1.0\n", "utf-8")
        adapter.write_text(dedent(script), "utf-8")
        return Peer(name=name, title="a fake", environment="fake", adapter=adapter, slow=slow)

    return write
