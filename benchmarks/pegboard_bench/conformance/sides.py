"""Servers by themselves and behind the gateway, each at an address of its own on this machine."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pegboard_bench.ports import free_port

SECONDS = 60.0
"""For a server, or a gateway with its server, to answer."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Subject:
    """A server to check, as commands: on standard streams, and on HTTP at a port that is put in for ``{port}``."""

    name: str
    stdio: Sequence[str]
    http: Sequence[str]
    environment: Mapping[str, str]

    @asynccontextmanager
    async def alone(self) -> AsyncIterator[str]:
        """Its address."""
        port = free_port()
        command = [each.format(port=port) for each in self.http]
        environment = {name: value.format(port=port) for name, value in self.environment.items()}
        async with _running(command, environment, port):
            yield f"http://127.0.0.1:{port}/mcp"

    @asynccontextmanager
    async def behind(self, transport: str, folder: Path) -> AsyncIterator[str]:
        """The address of a gateway that lists all its tools, with this server behind it on `stdio` or `http`."""
        if transport == "stdio":
            async with _gateway({"command": self.stdio[0], "args": list(self.stdio[1:])}, folder) as url:
                yield url
            return
        async with self.alone() as address, _gateway({"url": address}, folder) as url:
            yield url


def subjects(servers: Path) -> list[Subject]:
    """The protocol's reference server, where it is installed in this folder, and our own."""
    everything = servers / "node_modules" / ".bin" / "mcp-server-everything"
    ours = (sys.executable, "-m", "pegboard_bench.conformance.server")
    found = [Subject(name="conforming", stdio=ours, http=(*ours, "{port}"), environment={})]
    if everything.exists():
        program = str(everything.absolute())
        environment = {"PORT": "{port}"}
        reference = Subject(
            name="server-everything", stdio=(program,), http=(program, "streamableHttp"), environment=environment
        )
        found.insert(0, reference)
    return found


@asynccontextmanager
async def _gateway(server: Mapping[str, Any], folder: Path) -> AsyncIterator[str]:
    port, config = free_port(), _configured(server, folder)
    command = [sys.executable, "-m", "pegboard", "serve", "--config", str(config), "--port", str(port)]
    kept = {"PEGBOARD_STATE_DIR": str(folder), "PEGBOARD_CACHE_DIR": str(folder), "PEGBOARD_START_WAIT": "30"}
    async with _running([*command, "--log-level", "error"], kept, port):
        yield f"http://127.0.0.1:{port}/mcp"


def _configured(server: Mapping[str, Any], folder: Path) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    config = folder / "servers.json"
    config.write_text(json.dumps({"mcpServers": {"upstream": server}, "pegboard": {"exposure": "eager"}}), "utf-8")
    return config


@asynccontextmanager
async def _running(command: Sequence[str], environment: Mapping[str, str], port: int) -> AsyncIterator[None]:
    """A process that listens on this port. Raises RuntimeError for one that ended, TimeoutError for one that hangs."""
    process = await asyncio.create_subprocess_exec(
        *command,
        env=os.environ | environment,
        stdout=asyncio.subprocess.DEVNULL,
        stderr=asyncio.subprocess.DEVNULL,
    )
    try:
        async with asyncio.timeout(SECONDS):
            while not await _listens(port):
                if process.returncode is not None:
                    raise RuntimeError(f"{command[0]} ended with {process.returncode} before it listened")
                await asyncio.sleep(0.05)
        yield
    finally:
        if process.returncode is None:
            process.terminate()
            try:
                await asyncio.wait_for(process.wait(), 10)
            except TimeoutError:
                process.kill()
                await process.wait()


async def _listens(port: int) -> bool:
    try:
        _, writer = await asyncio.open_connection("127.0.0.1", port)
    except OSError:
        return False
    writer.close()
    return True
