"""A `pegboard serve` that a scenario starts, kills and starts again at one address, and a client of it."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import Any

import httpx2

from pegboard_bench.hostile.health import HealthWatch
from pegboard_bench.ports import free_port

STARTED = "Serving MCP at"
STARTING = 90.0
PAUSE = 0.02
"""Seconds between two looks at the process."""
SLOWEST = 120.0
"""Seconds that a request may take before it counts as lost."""
REVISION = "2025-11-25"


class Serve:
    """One process on a port that it keeps, with these options and MCP servers."""

    def __init__(self, folder: Path, servers: Mapping[str, Any], **options: Any) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.port = free_port()
        self.base = f"http://127.0.0.1:{self.port}"
        self.log = folder / "log"
        self._config = folder / "servers.json"
        own = {"state_dir": str(folder / "state"), "cache_dir": str(folder / "cache"), "start_wait": 30, **options}
        self._config.write_text(json.dumps({"mcpServers": dict(servers), "pegboard": own}))
        self.process: subprocess.Popen[bytes] | None = None

    async def start(self) -> None:
        """Raises RuntimeError where it ends instead, with what it said."""
        command = [sys.executable, "-m", "pegboard", "serve", "--config", str(self._config), "--port", str(self.port)]
        environment = {name: value for name, value in os.environ.items() if not name.startswith("PEGBOARD_")}
        before = self.said().count(STARTED)
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL, stderr=log)  # noqa: ASYNC220
        async with asyncio.timeout(STARTING):
            while self.said().count(STARTED) == before:
                if self.process.poll() is not None:
                    raise RuntimeError(f"`pegboard serve` did not start: {self.said()}")
                await asyncio.sleep(PAUSE)

    def said(self) -> str:
        return self.log.read_text("utf-8", "replace") if self.log.exists() else ""

    def kill(self) -> None:
        """As a crash does."""
        if self.process is not None:
            self.process.kill()
            self.process.wait()
            self.process = None

    async def end(self, within: float = SLOWEST) -> float:
        """As an operator does: the seconds that it took. Raises TimeoutError."""
        if self.process is None:
            return 0.0
        began = time.monotonic()
        self.process.send_signal(signal.SIGTERM)
        async with asyncio.timeout(within):
            while self.process.poll() is None:  # noqa: ASYNC110 - another process ends it
                await asyncio.sleep(PAUSE)
        self.process = None
        return time.monotonic() - began

    @contextmanager
    def watched(self) -> Iterator[HealthWatch]:
        """Within it, its health is watched; the figures may be read until it ends."""
        watch = HealthWatch("127.0.0.1", self.port, self.process.pid if self.process else 0)
        watch.start()
        try:
            yield watch
        finally:
            watch.end()


@dataclass
class Client:
    """A client of the handshake era that says no more than it must."""

    http: httpx2.AsyncClient
    base: str
    session: str = ""
    ids: Any = field(default_factory=count)

    async def begin(self) -> Client:
        about = {"protocolVersion": REVISION, "capabilities": {}, "clientInfo": {"name": "opencode", "version": "1"}}
        answer = await self.post("initialize", about)
        self.session = answer.headers["mcp-session-id"]
        await self.post("notifications/initialized", {})
        return self

    async def post(self, method: str, params: Mapping[str, Any]) -> httpx2.Response:
        message: dict[str, Any] = {"jsonrpc": "2.0", "method": method, "params": dict(params)}
        if not method.startswith("notifications/"):
            message["id"] = next(self.ids)
        headers = {"accept": "application/json, text/event-stream"}
        if self.session:
            headers |= {"mcp-session-id": self.session, "mcp-protocol-version": REVISION}
        return await self.http.post(f"{self.base}/mcp?exposure=static", json=message, headers=headers)

    async def invoke(self, name: str, arguments: Mapping[str, Any]) -> httpx2.Response:
        """Call a tool that is not listed."""
        inner = {"name": name, "arguments": dict(arguments)}
        return await self.post("tools/call", {"name": "invoke_tool", "arguments": inner})
