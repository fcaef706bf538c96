"""One framework's agents behind its adapter, run by the driver of the tests in the framework's own environment."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from pegboard.errors import ConfigError

DRIVERS = Path("tests/adapters")
INSTALLED = Path(".demo/frameworks")
FRAMEWORKS = tuple(sorted(path.stem.removeprefix("drive_") for path in DRIVERS.glob("drive_*.py")))
PARTS = ("twenty_turns", "gate", "way_back", "parallel", "streaming", "several_agents", "board")
ADDED_TIME = "added_time"
QUIET: Mapping[str, str] = {
    "DO_NOT_TRACK": "1",
    "NO_PROXY": "127.0.0.1",
    "CREWAI_DISABLE_TELEMETRY": "true",
    "OTEL_SDK_DISABLED": "1",
}
LIMIT = 1800.0
"""Seconds that a driver may take."""


def environment(name: str, installed: Path = INSTALLED) -> Path:
    """The folder of a framework's environment; it may not be there."""
    return installed / name.replace("_", "-")


def release(name: str, installed: Path = INSTALLED) -> str:
    """The requirement that was installed, such as ``crewai==1.15.30``. Raises ConfigError where nothing was."""
    said = environment(name, installed) / "installed.txt"
    if not said.exists():
        raise ConfigError(f"{name} is not installed.", remedy="Run scripts/install_frameworks.py.")
    return said.read_text("utf-8").split()[0]


def driven(
    name: str, parts: Sequence[str] = PARTS, *, installed: Path = INSTALLED, limit: float = LIMIT
) -> dict[str, Any]:
    """What each part found, with Pegboard as it is in this checkout.

    Raises ConfigError where the driver does not run, and TimeoutExpired after ``limit`` seconds.
    """
    release(name, installed)
    path = os.pathsep.join(str(Path(each).absolute()) for each in (DRIVERS, "src"))
    with TemporaryDirectory() as home:
        done = subprocess.run(
            [
                str(environment(name, installed).absolute() / "bin" / "python"),
                str(DRIVERS.absolute() / f"drive_{name}.py"),
                *parts,
            ],
            capture_output=True,
            text=True,
            check=False,
            timeout=limit,
            cwd=home,
            env=os.environ | QUIET | {"PYTHONPATH": path},
        )
    lines = done.stdout.splitlines()
    if done.returncode or not lines:
        raise ConfigError(
            f"The driver of {name} ended with {done.returncode}: {done.stderr[-3000:]}",
            remedy="Run scripts/install_frameworks.py.",
        )
    found: dict[str, Any] = json.loads(lines[-1])
    return found
