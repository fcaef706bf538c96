"""What the library alone takes: megabytes of its environment, time of its import and of its first decision."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import venv
from collections.abc import Iterable
from pathlib import Path

BROUGHT = ("pip", "setuptools", "pkg_resources", "_distutils_hack")
"""What an empty environment has."""
CHECK = Path("scripts") / "check_core.py"


def build_wheel(folder: Path) -> Path:
    """Pegboard's wheel from this checkout."""
    command = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--wheel-dir", str(folder), "."]
    subprocess.run(command, check=True)
    return next(folder.glob("pegboard-*.whl"))


def empty_environment(folder: Path) -> Path:
    """The interpreter of a new environment with a pip that writes reports."""
    venv.create(folder, with_pip=True, clear=True)
    python = folder / "bin" / "python"
    subprocess.run([str(python), "-m", "pip", "install", "--quiet", "--upgrade", "pip>=25.1"], check=True)
    return python


def measured(python: Path, wheel: Path) -> dict[str, float]:
    """Figures of the library in this environment, where it is installed now."""
    subprocess.run([str(python), "-m", "pip", "install", "--quiet", str(wheel)], check=True)
    load = os.getloadavg()[0]
    command = [str(python), str(CHECK.absolute()), "--json"]
    said = subprocess.run(command, check=True, capture_output=True, text=True, cwd=python.parent)
    times = json.loads(said.stdout)
    packages = next(python.parents[1].glob("lib/python3*/site-packages"))
    return {
        "core/load": load,
        "core/megabytes": megabytes(packages),
        **{f"core/{name}": float(value) for name, value in times.items()},
    }


def megabytes(folder: Path) -> float:
    """What the packages of a folder take on the disk, without those that every environment has."""
    own = (each for each in folder.iterdir() if each.name.split("-")[0] not in BROUGHT)
    return sum(file.stat().st_blocks * 512 for each in own for file in _files(each)) / 2**20


def _files(path: Path) -> Iterable[Path]:
    return [path] if path.is_file() else [file for file in path.rglob("*") if file.is_file()]
