"""The peers: which environment, which adapter, and whether one is too slow for every query of a large set."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path

ADAPTERS = Path(__file__).parent / "adapters"


@dataclass(frozen=True, slots=True, kw_only=True)
class Peer:
    """``environment`` is a folder of `scripts/install_peers.py`; ``slow`` peers see a sample of a large set.

    ``title`` says what ranks, and by which text.
    """

    name: str
    title: str
    environment: str
    adapter: Path
    variant: str = ""
    slow: bool = False

    def python(self, folder: Path) -> Path:
        """The Python that has this peer."""
        programs = "Scripts/python.exe" if sys.platform == "win32" else "bin/python"
        return folder / self.environment / programs


def _peer(environment: str, title: str, *, name: str = "", variant: str = "", slow: bool = False) -> Peer:
    adapter = ADAPTERS / f"{environment.replace('-', '_')}.py"
    return Peer(
        name=name or environment, title=title, environment=environment, adapter=adapter, variant=variant, slow=slow
    )


BASELINES = (
    _peer("baselines", "all-MiniLM-L6-v2, cosine", name="minilm", variant="minilm"),
    _peer("baselines", "z-scores of MiniLM and half of BM25 (bm25s), added", name="zsum", variant="zsum"),
    _peer("baselines", "MiniLM and BM25 (bm25s) by reciprocal rank", name="rrf", variant="rrf"),
)
"""Nobody's product: what anyone writes first, on name and description."""

PEERS = (
    _peer("fastmcp", "BM25 search transform: name, description, parameters"),
    _peer("graph-tool-call", "BM25 and a graph of tools", slow=True),
    _peer("graph-tool-call", "the same with MiniLM", name="graph-tool-call-minilm", variant="minilm", slow=True),
    _peer("ratel", "hybrid: BM25 and MiniLM, RRF; name, description, whole schema", variant="hybrid", slow=True),
    _peer("ratel", "BM25, its default", name="ratel-bm25", variant="bm25"),
    _peer("toolpicker", "BM25 (name, parameters, description) and MiniLM (description), RRF"),
    _peer("adk-tool-search", "BM25 and shared words: name, description, parameters"),
    _peer("toolscope", "MiniLM: name, beginning of the description"),
    _peer("smartmcp-router", "MiniLM and FAISS: name, description, parameters"),
    _peer("callbus", "hybrid: BM25 (whole definition) and MiniLM (name, description), RRF"),
)
"""With their own defaults, and with MiniLM where they let one choose the encoder."""
