"""A stand-in for `pegboard serve`, as a process of its own that can be killed and started again."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx2

from processes import until

SERVING = str(Path(__file__).parent / "servers" / "serving.py")


def free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return int(listener.getsockname()[1])


@dataclass
class Serve:
    folder: Path
    files: Sequence[Path] = ()
    port: int = field(default_factory=free_port)
    process: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/mcp"

    async def start(self) -> None:
        command = [sys.executable, SERVING, str(self.port), str(self.folder), *map(str, self.files)]
        self.process = subprocess.Popen(command, env=dict(os.environ))
        try:
            await until(self.answers)
        except TimeoutError:
            self.kill()
            raise

    def answers(self) -> bool:
        return bool(self.health())

    def health(self) -> dict[str, Any]:
        try:
            answer = httpx2.get(f"http://127.0.0.1:{self.port}/healthz", trust_env=False)
        except httpx2.HTTPError:
            return {}
        if not answer.headers.get("content-type", "").startswith("application/json"):
            return {}  # of a test before, that ends on the same port
        return dict(answer.json())

    def kill(self) -> None:
        if self.process:
            self.process.kill()
            self.process.wait()
