"""The peers: which environment, which adapter, and whether one is too slow for every query of a large set."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path

ADAPTERS = Path(__file__).parent / "adapters"


@dataclass(frozen=True, slots=True, kw_only=True)
class Peer:
    """``environment`` is a folder of `scripts/install_peers.py`; ``slow`` peers see a sample of a large set."""

    name: str
    environment: str
    adapter: Path
    variant: str = ""
    slow: bool = False

    def python(self, folder: Path) -> Path:
        """The Python that has this peer."""
        programs = "Scripts/python.exe" if sys.platform == "win32" else "bin/python"
        return folder / self.environment / programs


def _peer(environment: str, *, name: str = "", variant: str = "", slow: bool = False) -> Peer:
    adapter = ADAPTERS / f"{environment.replace('-', '_')}.py"
    return Peer(name=name or environment, environment=environment, adapter=adapter, variant=variant, slow=slow)


PEERS = (
    _peer("fastmcp"),
    _peer("graph-tool-call", slow=True),
    _peer("graph-tool-call", name="graph-tool-call-minilm", variant="minilm", slow=True),
    _peer("ratel", variant="hybrid", slow=True),
    _peer("ratel", name="ratel-bm25", variant="bm25"),
    _peer("toolpicker", slow=True),
    _peer("adk-tool-search"),
    _peer("toolscope"),
    _peer("smartmcp-router"),
    _peer("callbus"),
)
"""With their own defaults, and with MiniLM where they let one choose the encoder."""
