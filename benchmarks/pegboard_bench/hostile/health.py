"""What a scenario does to a gateway: the longest time that `/healthz` did not answer, and the memory it takes."""

from __future__ import annotations

import http.client
import threading
import time
from pathlib import Path

EVERY = 0.02
"""Seconds between two requests for its health."""
GIVE_UP = 60.0
"""Seconds after which a request counts as never answered."""


class HealthWatch:
    """Asks a gateway for its health from a thread, again and again: what the scenario does on its own event loop does
    not delay it. Memory is the resident set in megabytes, with that of the gateway's own workers."""

    def __init__(self, host: str, port: int, pid: int) -> None:
        self._host = host
        self._port = port
        self._pid = pid
        self._gap = 0.0
        self._asked: float | None = None
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)
        self.idle_mb = 0.0

    def start(self) -> None:
        self.begin()
        self._thread.start()

    def begin(self) -> None:
        """Count from now on."""
        self.idle_mb = self._memory("VmRSS")
        Path(f"/proc/{self._pid}/clear_refs").write_text("5")  # resets the peak (proc(5))
        self._gap = 0.0

    def end(self) -> None:
        """Stop asking, once the request under way is answered."""
        self._over.set()
        self._thread.join(GIVE_UP)

    @property
    def longest(self) -> float:
        """The longest time that an answer took since `begin`, in seconds; an unanswered request counts as far as it
        has come."""
        asked = self._asked
        return max(self._gap, time.monotonic() - asked if asked is not None else 0.0)

    @property
    def peak_over_idle_mb(self) -> float:
        """Since `begin`."""
        return max(0.0, self._memory("VmHWM") - self.idle_mb)

    def _watch(self) -> None:
        while not self._over.is_set():
            self._asked = time.monotonic()
            if is_healthy(self._host, self._port):
                self._gap = max(self._gap, time.monotonic() - self._asked)
                self._asked = None
            self._over.wait(EVERY)

    def _memory(self, name: str) -> float:
        return sum(_kilobytes(pid, name) for pid in (self._pid, *_workers(self._pid))) / 1024


def is_healthy(host: str, port: int) -> bool:
    connection = http.client.HTTPConnection(host, port, timeout=GIVE_UP)
    try:
        connection.request("GET", "/healthz")
        return connection.getresponse().status == http.client.OK
    except (OSError, http.client.HTTPException):
        return False
    finally:
        connection.close()


def _workers(pid: int) -> list[int]:
    """The children that run Pegboard's code; the servers of a scenario do so under another name."""
    try:
        children = [int(each) for each in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
        return [child for child in children if b"pegboard_bench" not in Path(f"/proc/{child}/cmdline").read_bytes()]
    except OSError:
        return []


def _kilobytes(pid: int, name: str) -> int:
    try:
        lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    except OSError:
        return 0
    return next((int(line.split()[1]) for line in lines if line.startswith(f"{name}:")), 0)
