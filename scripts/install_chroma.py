"""Installs a Chroma server in an environment of its own: it brings 500 MB that nothing of Pegboard needs.

    python scripts/install_chroma.py [FOLDER]        # default .demo/chroma

Tests and `make bench-index` start it as `chroma run`. A second run installs nothing.
"""

from __future__ import annotations

import sys
from pathlib import Path

from environments import from_pypi

CHROMA = "chromadb>=1.5,<2"


def install(folder: Path) -> Path | None:
    """The path of the program; None where it could not be installed."""
    return from_pypi(folder.absolute(), CHROMA, "chroma")


if __name__ == "__main__":
    sys.exit(install(Path(sys.argv[1] if len(sys.argv) > 1 else ".demo/chroma")) is None)
