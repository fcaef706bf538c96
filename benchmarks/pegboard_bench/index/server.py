"""A Chroma server of one's own, on a free port of this machine."""

from __future__ import annotations

import os
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from pegboard_bench.ports import free_port

PATIENCE = 60.0
"""Seconds that it may take to start."""


class ChromaServer:
    """`chroma run` over a folder. It can be stopped and started again on the same port."""

    def __init__(self, program: Path, folder: Path) -> None:
        self._program = program.absolute()
        self._folder = folder
        self._port = free_port()
        self._process: subprocess.Popen[bytes] | None = None
        self.url = f"http://127.0.0.1:{self._port}"

    def start(self) -> None:
        """Returns when it answers; raises RuntimeError where it does not."""
        place = ["--path", str(self._folder), "--host", "127.0.0.1", "--port", str(self._port)]
        environment = {name: value for name, value in os.environ.items() if not name.startswith("CHROMA")}
        self._process = subprocess.Popen(
            [str(self._program), "run", *place],
            cwd=self._folder,
            env=environment,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        ends = time.monotonic() + PATIENCE
        while not self._answers():
            if time.monotonic() > ends or self._process.poll() is not None:
                self.stop()
                raise RuntimeError(f"The Chroma server {self._program} did not start")
            time.sleep(0.05)

    def stop(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None

    @property
    def pid(self) -> int | None:
        return None if self._process is None else self._process.pid

    def _answers(self) -> bool:
        try:
            with urllib.request.urlopen(f"{self.url}/api/v2/heartbeat", timeout=5) as response:  # noqa: S310
                return bool(response.status == 200)
        except (urllib.error.URLError, OSError):
            return False


@contextmanager
def chroma_server(program: Path, folder: Path) -> Iterator[ChromaServer]:
    server = ChromaServer(program, folder)
    try:
        server.start()
        yield server
    finally:
        server.stop()
