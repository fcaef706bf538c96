"""A real `pegboard serve` under watch: the longest time that `/healthz` did not answer, and its memory."""

from __future__ import annotations

import http.client
import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlsplit

EVERY = 0.02
"""Seconds between two questions after its health."""
GIVE_UP = 60.0
"""Seconds after which a question counts as never answered."""
START = 60.0
MB = 1024 * 1024
ENDING = 30.0


@dataclass(slots=True)
class Watched:
    """A gateway's process. Times are seconds, memory is megabytes of resident set."""

    process: subprocess.Popen[bytes]
    host: str
    port: int
    idle_mb: float = 0.0
    _gap: float = 0.0
    _asked: float | None = None
    _over: threading.Event = field(default_factory=threading.Event)

    @property
    def url(self) -> str:
        return f"http://{self.host}:{self.port}"

    @property
    def longest(self) -> float:
        """The longest that an answer took since `begin`; one that is still owed counts as far as it has come."""
        asked = self._asked
        return max(self._gap, time.monotonic() - asked if asked is not None else 0.0)

    def begin(self) -> None:
        """Count from now on."""
        self.idle_mb = self._memory("VmRSS")
        Path(f"/proc/{self.process.pid}/clear_refs").write_text("5")  # the peak begins anew (proc(5))
        self._gap = 0.0

    @property
    def peak_over_idle_mb(self) -> float:
        """Since `begin`."""
        return max(0.0, self._memory("VmHWM") - self.idle_mb)

    def _memory(self, name: str) -> float:
        """Of the gateway and of the processes of its own that work for it."""
        pids = [self.process.pid, *_workers(self.process.pid)]
        return sum(_kilobytes(pid, name) for pid in pids) / 1024

    def watch(self) -> None:
        """Ask and ask again, until it is over."""
        while not self._over.is_set():
            self._asked = time.monotonic()
            answered = _is_healthy(self.host, self.port)
            if answered:
                self._gap = max(self._gap, time.monotonic() - self._asked)
                self._asked = None
            self._over.wait(EVERY)

    def end(self) -> None:
        self._over.set()


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
        watched = Watched(process, address.hostname or "127.0.0.1", address.port or 0)
        _until_healthy(watched)
        watching = threading.Thread(target=watched.watch, daemon=True)
        watching.start()
        yield watched
        watched.end()
    finally:
        _ended(process)


def _until_healthy(watched: Watched) -> None:
    end = time.monotonic() + START
    while not _is_healthy(watched.host, watched.port):
        if time.monotonic() > end:
            raise RuntimeError("The gateway did not answer")
        time.sleep(EVERY)


def _is_healthy(host: str, port: int) -> bool:
    connection = http.client.HTTPConnection(host, port, timeout=GIVE_UP)
    try:
        connection.request("GET", "/healthz")
        return connection.getresponse().status == http.client.OK
    except (OSError, http.client.HTTPException):
        return False
    finally:
        connection.close()


def _workers(pid: int) -> list[int]:
    """The children that run this Python: servers of the scenario do so under another name."""
    try:
        children = [int(each) for each in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
        return [child for child in children if b"pegboard.bench" not in Path(f"/proc/{child}/cmdline").read_bytes()]
    except OSError:
        return []


def _kilobytes(pid: int, name: str) -> int:
    try:
        lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    except OSError:
        return 0
    return next((int(line.split()[1]) for line in lines if line.startswith(f"{name}:")), 0)


def _ended(process: subprocess.Popen[bytes]) -> None:
    process.send_signal(signal.SIGTERM)
    with suppress(subprocess.TimeoutExpired):
        process.wait(ENDING)
        return
    process.kill()
    process.wait()
