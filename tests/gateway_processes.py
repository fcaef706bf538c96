"""`pegboard serve` as processes that can be killed, and a balancer before several of them."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

from pegboard_bench.ports import free_port
from processes import alive, descendants, eventually
from upstream_specs import SCRIPTED

STARTED = "Serving MCP at"


class GatewayProcess:
    """One process, on one port whatever happens to it, with a scripted server behind it."""

    def __init__(self, folder: Path, **options: Any) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.port = free_port()
        self.url = f"http://127.0.0.1:{self.port}/mcp"
        self.config = folder / "servers.json"
        self.log = folder / "log"
        server = {"command": sys.executable, "args": [SCRIPTED]}
        own = {
            "eager_tools": 0,
            "eager_tokens": 0,
            "profile": "keyword",
            "start_wait": 20,
            "exposure": "dynamic",
        } | options
        self.config.write_text(json.dumps({"mcpServers": {"scripted": server}, "pegboard": own}))
        self.environment = dict(os.environ) | {
            "PEGBOARD_STATE_DIR": str(folder / "state"),
            "PEGBOARD_CACHE_DIR": str(folder / "cache"),
        }
        self.flags: list[str] = []
        self.process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        command = [sys.executable, "-m", "pegboard", "serve", "--config", str(self.config), "--port", str(self.port)]
        command += self.flags
        starts = self.said().count(STARTED)
        with self.log.open("ab") as log:
            process = subprocess.Popen(command, env=self.environment, stdout=subprocess.DEVNULL, stderr=log)
            self.process = process
        assert eventually(lambda: process.poll() is not None or self.said().count(STARTED) > starts), self.said()
        assert process.poll() is None, self.said()

    def said(self) -> str:
        return self.log.read_text() if self.log.exists() else ""

    def kill(self) -> None:
        """Without warning; its servers are given the time to notice."""
        if self.process is not None:
            servers = descendants(self.process.pid)
            self.process.send_signal(signal.SIGKILL)
            self.process.wait()
            assert eventually(lambda: not any(map(alive, servers)))
            self.process = None

    def end(self) -> None:
        """As an operator does."""
        if self.process is not None:
            self.process.terminate()
            self.process.wait(30)
            self.process = None

    def signal(self, number: signal.Signals) -> None:
        assert self.process is not None
        self.process.send_signal(number)


@asynccontextmanager
async def balanced(*ports: int) -> AsyncIterator[str]:
    """The address of a balancer that gives each connection to the next of them, or to one after it that answers."""
    turns = iter(range(10**9))

    async def connect(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        first = next(turns)
        for place in range(len(ports)):
            with suppress(OSError):
                behind = await asyncio.open_connection("127.0.0.1", ports[(first + place) % len(ports)])
                await _both_ways((reader, writer), behind)
                return
        writer.close()

    server = await asyncio.start_server(connect, "127.0.0.1", 0, backlog=1024)
    try:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/mcp"
    finally:
        server.close()


Stream = tuple[asyncio.StreamReader, asyncio.StreamWriter]


async def _both_ways(one: Stream, other: Stream) -> None:
    pumps = [asyncio.create_task(_pump(one[0], other[1])), asyncio.create_task(_pump(other[0], one[1]))]
    try:
        await asyncio.wait(pumps, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for each in pumps:
            each.cancel()
        for writer in (one[1], other[1]):
            writer.close()


async def _pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with suppress(OSError):
        while data := await reader.read(65_536):
            writer.write(data)
            await writer.drain()
