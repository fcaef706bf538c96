"""A real `pegboard serve` with a scenario's configuration, and its health while it runs."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from pegboard_bench.hostile.health import EVERY, HealthWatch, is_healthy

START = 60.0
ENDING = 30.0


@dataclass(frozen=True, slots=True)
class Watched:
    """A gateway at an address, under watch."""

    host: str
    port: int
    health: HealthWatch

    @property
    def url(self) -> str:
        return f"http://{self.host}:{self.port}"


@contextmanager
def gateway(folder: Path, configuration: str, environment: dict[str, str] | None = None) -> Iterator[Watched]:
    """A gateway with this configuration, as TOML, and files of its own. Raises RuntimeError if it does not start."""
    file = folder / "pegboard.toml"
    places = f'state_dir = "{folder / "state"}"\ncache_dir = "{folder / "cache"}"\nport = 0\n'
    file.write_text(places + configuration, "utf-8")
    with (folder / "log.txt").open("wb") as log:
        process = subprocess.Popen(
            [sys.executable, "-m", "pegboard", "serve", "--config", str(file), "--json"],
            stdout=subprocess.PIPE,
            stderr=log,
            env=os.environ | (environment or {}),
        )
    try:
        line = process.stdout.readline() if process.stdout else b""
        if not line:
            raise RuntimeError(f"The gateway did not start: {(folder / 'log.txt').read_text()}")
        address = urlsplit(json.loads(line)["url"])
        host, port = address.hostname or "127.0.0.1", address.port or 0
        _until_healthy(host, port)
        health = HealthWatch(host, port, process.pid)
        health.start()
        yield Watched(host, port, health)
        health.end()
    finally:
        _ended(process)


def _until_healthy(host: str, port: int) -> None:
    end = time.monotonic() + START
    while not is_healthy(host, port):
        if time.monotonic() > end:
            raise RuntimeError("The gateway did not answer")
        time.sleep(EVERY)


def _ended(process: subprocess.Popen[bytes]) -> None:
    process.send_signal(signal.SIGTERM)
    with suppress(subprocess.TimeoutExpired):
        process.wait(ENDING)
        return
    process.kill()
    process.wait()
