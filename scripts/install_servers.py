"""Installs real MCP servers, each in an environment of its own, and writes an mcpServers file that starts them.

    python scripts/install_servers.py [FOLDER]        # default .demo

Servers from PyPI always; servers from npm where node is there. A second run installs nothing.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from environments import binary, from_npm, from_pypi, has, say, succeeds

PYPI = {"git": "mcp-server-git", "time": "mcp-server-time", "fetch": "mcp-server-fetch"}
NPM = {
    "everything": ("@modelcontextprotocol/server-everything", "mcp-server-everything"),
    "filesystem": ("@modelcontextprotocol/server-filesystem", "mcp-server-filesystem"),
    "memory": ("@modelcontextprotocol/server-memory", "mcp-server-memory"),
    "playwright": ("@playwright/mcp", "playwright-mcp"),
}
ARGUMENTS = {
    "filesystem": ["repository"],
    "fetch": ["--ignore-robots-txt", "--allow-private-ips"],
    "playwright": ["--headless", "--isolated"],
}


def install(folder: Path) -> Path:
    """Everything that can be installed here; the path of the configuration file."""
    folder = folder.absolute()
    folder.mkdir(parents=True, exist_ok=True)
    _repository(folder / "repository")
    programs = {
        name: from_pypi(folder / "servers" / name, package, package)
        for name, package in PYPI.items()
        if name != "git" or has("git")
    }
    if missing := [name for name, program in programs.items() if program is None]:
        raise SystemExit(f"Could not be installed: {', '.join(missing)}.")
    if from_npm(folder / "npm", [package for package, _ in NPM.values()]):
        programs |= {name: binary(folder / "npm", program) for name, (_, program) in NPM.items()}
    else:
        say("going on without the servers from npm: they need node, and its registry")
    config = folder / "mcp.json"
    servers = {name: _entry(name, program, folder) for name, program in programs.items() if program}
    config.write_text(json.dumps({"mcpServers": servers}, indent=2) + "\n")
    return config


def _entry(name: str, command: Path, folder: Path) -> dict[str, Any]:
    entry: dict[str, Any] = {"command": str(command), "args": ARGUMENTS.get(name, []), "cwd": str(folder)}
    return entry | ({"env": {"MEMORY_FILE_PATH": str(folder / "memory.jsonl")}} if name == "memory" else {})


def _repository(folder: Path) -> None:
    """A small git repository for the servers to work on."""
    if folder.exists():
        return
    folder.mkdir()
    (folder / "notes.txt").write_text("Buy hooks and a pegboard.\n")
    if has("git"):
        author = ["-c", "user.name=Demo", "-c", "user.email=demo@pegboard.invalid"]
        for arguments in (
            ["init", "--quiet"],
            ["add", "."],
            [*author, "commit", "--quiet", "-m", "Hang up the first hook"],
        ):
            if not succeeds(["git", "-C", str(folder), *arguments]):
                raise SystemExit("The repository for the servers to work on could not be made.")


if __name__ == "__main__":
    print(install(Path(sys.argv[1] if len(sys.argv) > 1 else ".demo")))
