"""Installs the MCP servers of `make bench-tasks`: those of `install_servers.py`, and SQLite's from PyPI.

    python scripts/install_task_servers.py [FOLDER]        # default .demo; writes FOLDER/task_servers.json

The file has a program for each server; what they work on is a folder of the benchmark's own.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import install_servers
from environments import programs, with_packages

SQLITE = ("mcp-server-sqlite==2025.4.25", "mcp<2")
"""Its last release knows nothing of the SDK 2, and does not say so."""
WANTED = ("everything", "fetch", "filesystem", "git", "memory", "time")


def install(folder: Path) -> Path:
    """The path of the file with the programs. Raises SystemExit if one cannot be installed: tasks need them all."""
    folder = folder.absolute()
    servers = json.loads(install_servers.install(folder).read_text("utf-8"))["mcpServers"]
    found = {name: servers[name]["command"] for name in WANTED if name in servers}
    if len(found) < len(WANTED) or not with_packages(folder / "servers" / "sqlite", SQLITE):
        raise SystemExit(f"Whole tasks need all of {', '.join((*WANTED, 'sqlite'))}, and not all could be installed.")
    path = folder / "task_servers.json"
    sqlite = programs(folder / "servers" / "sqlite") / "mcp-server-sqlite"
    path.write_text(json.dumps(found | {"sqlite": str(sqlite)}, indent=2) + "\n")
    return path


if __name__ == "__main__":
    print(install(Path(sys.argv[1] if len(sys.argv) > 1 else ".demo")))
