"""Installs real MCP servers, each in an environment of its own, and writes an mcpServers file that starts them.

    python scripts/install_servers.py [FOLDER]        # default .demo

Servers from PyPI always; servers from npm where node is there. A second run installs nothing.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import venv
from pathlib import Path
from typing import Any

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
    servers = {
        name: _from_pypi(folder, name, package) for name, package in PYPI.items() if name != "git" or _has("git")
    }
    if _has("npm") and _has("node") and _npm_install(folder):
        servers |= {name: _from_npm(folder, name, binary) for name, (_, binary) in NPM.items()}
    else:
        say("going on without the servers from npm: they need node, and its registry")
    config = folder / "mcp.json"
    config.write_text(json.dumps({"mcpServers": servers}, indent=2) + "\n")
    return config


def say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def _has(program: str) -> bool:
    return shutil.which(program) is not None


def _entry(name: str, command: Path, folder: Path) -> dict[str, Any]:
    entry: dict[str, Any] = {"command": str(command), "args": ARGUMENTS.get(name, []), "cwd": str(folder)}
    return entry | ({"env": {"MEMORY_FILE_PATH": str(folder / "memory.jsonl")}} if name == "memory" else {})


def _from_pypi(folder: Path, name: str, package: str) -> dict[str, Any]:
    environment = folder / "servers" / name
    command = environment / ("Scripts" if sys.platform == "win32" else "bin") / package
    if not command.exists():
        say(f"installing {package} …")
        venv.create(environment, with_pip=True)
        _run([str(command.with_name("python")), "-m", "pip", "install", "--quiet", package])
    return _entry(name, command, folder)


def _npm_install(folder: Path) -> bool:
    """Whether they are there now; without them everything else still works."""
    packages = [package for package, binary in NPM.values() if not _binary(folder, binary).exists()]
    if packages:
        say(f"installing {', '.join(packages)} …")
        quiet = ["--silent", "--no-fund", "--no-audit"]
        finished = subprocess.run(["npm", "install", *quiet, "--prefix", str(folder / "npm"), *packages], check=False)
        return finished.returncode == 0
    return True


def _from_npm(folder: Path, name: str, binary: str) -> dict[str, Any]:
    return _entry(name, _binary(folder, binary), folder)


def _binary(folder: Path, binary: str) -> Path:
    return folder / "npm" / "node_modules" / ".bin" / binary


def _repository(folder: Path) -> None:
    """A small git repository for the servers to work on."""
    if folder.exists():
        return
    folder.mkdir()
    (folder / "notes.txt").write_text("Buy hooks and a pegboard.\n")
    if _has("git"):
        author = ["-c", "user.name=Demo", "-c", "user.email=demo@pegboard.invalid"]
        for arguments in (
            ["init", "--quiet"],
            ["add", "."],
            [*author, "commit", "--quiet", "-m", "Hang up the first hook"],
        ):
            _run(["git", "-C", str(folder), *arguments])


def _run(command: list[str]) -> None:
    finished = subprocess.run(command, capture_output=True, text=True, check=False)
    if finished.returncode:
        raise SystemExit(f"{' '.join(command)} failed:\n{finished.stdout}{finished.stderr}")


if __name__ == "__main__":
    print(install(Path(sys.argv[1] if len(sys.argv) > 1 else ".demo")))
