"""Installs LiteLLM's proxy, which the benchmark of the LLM gateway compares with, in an environment of its own.

    python scripts/install_litellm.py [FOLDER]      # default .demo/litellm

A second run installs nothing.
"""

from __future__ import annotations

import sys
from pathlib import Path

from environments import with_packages

PACKAGES = ("litellm[proxy]>=1.106,<1.107",)

if __name__ == "__main__":
    sys.exit(not with_packages(Path(sys.argv[1] if len(sys.argv) > 1 else ".demo/litellm").absolute(), PACKAGES))
