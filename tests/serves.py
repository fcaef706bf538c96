"""A stand-in for `pegboard serve`, as a process of its own that can be killed and started again."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from http.client import HTTPConnection, HTTPException
from pathlib import Path
from typing import Any

from pegboard_bench.ports import free_port
from processes import until

SERVING = str(Path(__file__).parent / "servers" / "serving.py")


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
        """What it says of itself; empty where nobody answers. Asked often: a client of httpx takes 20 ms to make."""
        connection = HTTPConnection("127.0.0.1", self.port, timeout=5)
        try:
            connection.request("GET", "/healthz")
            answer = connection.getresponse()
            if not answer.headers.get("content-type", "").startswith("application/json"):
                return {}  # of a test before, that ends on the same port
            return dict(json.loads(answer.read()))
        except (OSError, HTTPException):
            return {}
        finally:
            connection.close()

    def kill(self) -> None:
        if self.process:
            self.process.kill()
            self.process.wait()
