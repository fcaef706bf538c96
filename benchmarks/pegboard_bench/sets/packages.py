"""MCP servers from npm and PyPI: installed beside everything else, started once, and what they list is kept.

A package runs as a program of this user, in a folder of its own, with no environment variables but those that it needs.
Its install scripts are not run.
"""

from __future__ import annotations

import asyncio
import json
import shutil
import subprocess
import sys
import tempfile
import venv
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from pegboard.errors import ConfigError
from pegboard_bench.sets.recipe import LISTING, Files, Package

INSTALL_SECONDS = 900


class Packages:
    """Gives what servers list, from the mirror or the cache, or by starting them."""

    def __init__(
        self, cache: Path, mirror: Path | None = None, *, tell: Callable[[str], None] = lambda line: None
    ) -> None:
        self._cache = cache
        self._mirror = mirror
        self._tell = tell

    def open(self, package: Package) -> Listing:
        """Raises ConfigError if the server cannot be had."""
        file = (self._mirror or self._cache) / package.registry / f"{package.name}@{package.version}.json"
        if not file.is_file():
            if self._mirror is not None:
                raise ConfigError(
                    f"What {package.name} {package.version} lists is not in the mirror.",
                    remedy=f"Put its tools/list answer into {file}, or leave out --mirror.",
                )
            self._tell(f"starting {package.name} {package.version} from {package.registry}")
            answer = json.dumps({"tools": _asked(package)}, ensure_ascii=False)
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(answer, "utf-8")
        return Listing(package, file)


class Listing(Files):
    """The answer of a server, as the one file of its package."""

    def __init__(self, package: Package, file: Path) -> None:
        super().__init__(package)
        self._file = file

    def paths(self, folder: str) -> list[str]:
        return [LISTING]

    def contents(self, paths: Sequence[str]) -> list[bytes]:
        if any(path != LISTING for path in paths):
            raise ConfigError(f"A package has no file but {LISTING!r}.")
        return [self._file.read_bytes() for _ in paths]


def _asked(package: Package) -> list[dict[str, Any]]:
    with tempfile.TemporaryDirectory(prefix="pegboard-package-") as folder:
        program = (_from_npm if package.registry == "npm" else _from_pypi)(package, Path(folder))
        return asyncio.run(_listed(package, program, Path(folder)))


def _from_npm(package: Package, folder: Path) -> Path:
    npm = shutil.which("npm")
    if npm is None:
        raise ConfigError(f"{package.name} needs npm, which is not installed.", remedy="Install Node.js 20 or newer.")
    flags = ("--silent", "--no-audit", "--no-fund", "--ignore-scripts")
    _run([npm, "install", *flags, "--prefix", str(folder), f"{package.name}@{package.version}"], package)
    return folder / "node_modules" / ".bin" / package.program


def _from_pypi(package: Package, folder: Path) -> Path:
    environment = folder / "environment"
    venv.create(environment, with_pip=True)
    programs = environment / ("Scripts" if sys.platform == "win32" else "bin")
    flags = ("--quiet", "--disable-pip-version-check")
    _run([str(programs / "python"), "-m", "pip", "install", *flags, f"{package.name}=={package.version}"], package)
    return programs / package.program


def _run(command: list[str], package: Package) -> None:
    try:
        subprocess.run(command, check=True, capture_output=True, text=True, timeout=INSTALL_SECONDS)
    except (OSError, subprocess.SubprocessError) as error:
        said = str(getattr(error, "stderr", "") or error).strip().splitlines()[-1:]
        raise ConfigError(
            f"{package.name} {package.version} cannot be installed from {package.registry}: {''.join(said)}",
            remedy="Check the network, then run the same command again: what is done is kept.",
        ) from error


async def _listed(package: Package, program: Path, folder: Path) -> list[dict[str, Any]]:
    """The definitions as the server sends them."""
    from pegboard.apps.cli.configs import given_or_usual
    from pegboard.apps.cli.tool_sources import load

    arguments = [each.format(folder=folder) for each in package.arguments]
    entry = {"command": str(program), "args": arguments, "cwd": str(folder), "env": dict(package.variables)}
    config = folder / "mcp.json"
    config.write_text(json.dumps({"mcpServers": {"server": entry}}), "utf-8")
    loaded = await load(given_or_usual([config]), [])
    if not loaded.catalog.tools:
        reason = loaded.unreachable.get("server", "It lists no tools.")
        raise ConfigError(f"{package.name} {package.version} did not answer: {reason}")
    return [dict(tool.definition or {}) for tool in loaded.catalog.tools]
