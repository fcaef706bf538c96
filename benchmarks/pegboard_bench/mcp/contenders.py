"""Who stands between the client and the server, and how each is started on either transport."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from mcp import Client, StdioServerParameters
from mcp.client.streamable_http import streamable_http_client

from pegboard_bench.ports import free_port

Transport = Literal["stdio", "http"]
Era = Literal["modern", "legacy"]
TRANSPORTS: tuple[Transport, ...] = ("stdio", "http")
ERAS: tuple[Era, ...] = ("modern", "legacy")
MODES: Mapping[Era, Literal["auto", "legacy"]] = {"modern": "auto", "legacy": "legacy"}

HERE = Path(__file__).parent
UPSTREAM = [sys.executable, str(HERE / "upstream.py")]
START_SECONDS = 60.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Contender:
    """``stdio`` is its command; ``http`` the same with the word PORT where the port goes."""

    name: str
    stdio: Sequence[str]
    http: Sequence[str]
    environment: Mapping[str, str]


def contenders(fastmcp_python: Path | None, folder: Path) -> list[Contender]:
    """Direct and Pegboard always, FastMCP's proxy where there is a Python that has it. ``folder`` is Pegboard's."""
    bare = [sys.executable, str(HERE / "bare_proxy.py")]
    config = folder / "mcp.json"
    config.write_text(json.dumps({"mcpServers": {"echo": {"command": UPSTREAM[0], "args": UPSTREAM[1:]}}}))
    pegboard = [sys.executable, "-m", "pegboard"]
    own = {"PEGBOARD_EXPOSURE": "eager", "PEGBOARD_CACHE_DIR": str(folder), "PEGBOARD_STATE_DIR": str(folder)}
    own["PEGBOARD_START_WAIT"] = f"{START_SECONDS:.0f}"  # the others wait, too
    found = [
        Contender(name="direct", stdio=UPSTREAM, http=[*UPSTREAM, "PORT"], environment={}),
        Contender(name="bare_sdk", stdio=[*bare, "stdio", *UPSTREAM], http=[*bare, "PORT", *UPSTREAM], environment={}),
        Contender(
            name="pegboard",
            stdio=[*pegboard, "mcp", "--", *UPSTREAM],
            http=[*pegboard, "serve", "--config", str(config), "--port", "PORT"],
            environment=own,
        ),
    ]
    if fastmcp_python is not None:
        proxy = [str(fastmcp_python), str(HERE / "fastmcp_proxy.py")]
        found.append(
            Contender(
                name="fastmcp",
                stdio=[*proxy, "stdio", *UPSTREAM],
                http=[*proxy, "PORT", *UPSTREAM],
                environment={"FASTMCP_LOG_LEVEL": "WARNING"},
            )
        )
    return found


@asynccontextmanager
async def connected(contender: Contender, transport: Transport, era: Era) -> AsyncIterator[Client]:
    """A client of the raw SDK, connected in the era asked for where the contender speaks it."""
    environment = {**os.environ, **contender.environment}
    if transport == "stdio":
        command = StdioServerParameters(command=contender.stdio[0], args=list(contender.stdio[1:]), env=environment)
        async with Client(command, mode=MODES[era], cache=None) as client:
            yield client
    else:
        with _listening(contender, environment) as url:
            async with Client(streamable_http_client(url), mode=MODES[era], cache=None) as client:
                yield client


@contextmanager
def _listening(contender: Contender, environment: Mapping[str, str]) -> Iterator[str]:
    port = free_port()
    command = [str(port) if word == "PORT" else word for word in contender.http]
    with subprocess.Popen(command, env=environment, stderr=subprocess.DEVNULL) as process:
        try:
            _wait_for(port, process)
            yield f"http://127.0.0.1:{port}/mcp"
        finally:
            process.terminate()


def _wait_for(port: int, process: subprocess.Popen[bytes]) -> None:
    """Until the port is listened on. Raises RuntimeError for a program that ends, or never listens."""
    deadline = time.monotonic() + START_SECONDS
    while time.monotonic() < deadline and process.poll() is None:
        try:
            socket.create_connection(("127.0.0.1", port), 1).close()
        except OSError:
            time.sleep(0.05)
        else:
            return
    raise RuntimeError(f"{process.args!r} does not listen; its exit code is {process.poll()}")
