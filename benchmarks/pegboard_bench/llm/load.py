"""Load by `wrk`, on what is served here."""

from __future__ import annotations

import json
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

from pegboard.errors import ConfigError

SCRIPT = Path(__file__).parent / "load.lua"


@dataclass(frozen=True, slots=True, kw_only=True)
class Load:
    """What one run of some seconds gave; latencies in milliseconds."""

    requests: int
    seconds: float
    p50_ms: float
    p95_ms: float
    p99_ms: float
    errors: int

    @property
    def per_second(self) -> float:
        return self.requests / self.seconds


def load(url: str, body: Path, *, clients: int, seconds: int, run: str = "0") -> Load:
    """Send the body in ``body``, with `@ASK@` in it replaced by words that were never there before.

    Raises ConfigError where wrk is not installed, or answers nothing.
    """
    if shutil.which("wrk") is None:
        raise ConfigError("wrk is not installed.", remedy="Install it (Debian: apt-get install wrk).")
    command = ["wrk", "-t1", f"-c{clients}", f"-d{seconds}s", "--timeout", "30s", "-s", str(SCRIPT), url]
    said = subprocess.run([*command, "--", str(body), run], capture_output=True, text=True, check=False)
    lines = [line for line in said.stdout.splitlines() if line.startswith("{")]
    if said.returncode or not lines:
        raise ConfigError(f"wrk failed: {said.stderr.strip() or said.stdout.strip()}", remedy="Run it by hand.")
    return Load(**json.loads(lines[-1]))
