"""Thousands of requests at sixty-four clients: no error that the provider did not make, and no memory that grows.

TEST_REQUESTS says how many; `make test-soak` makes ten thousand.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import httpx2
import pytest
from starlette.types import Receive, Scope, Send

from model_bodies import asking
from model_doors import served
from pegboard_bench.ports import free_port
from processes import until
from raw_http import connect, request

CLIENTS = 64
REQUESTS = int(os.environ.get("TEST_REQUESTS", "3000"))
SLACK_MB = 40
"""What allocators, caches of queries and remembered conversations may take once the gateway is warm."""
OPTIONS = """
[llm]
patience = 30
filter_timeout = 30
policy = { least_tokens = 0 }
"""
JOBS = [f"do_thing_{number}" for number in range(20)]


class Failing:
    """A provider that answers every tenth request with a 500, and counts both."""

    def __init__(self) -> None:
        self.answered = 0
        self.failed = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        while (await receive()).get("more_body"):
            pass
        self.answered += 1
        fails = self.answered % 10 == 0
        self.failed += fails
        status, body = (500, b'{"error": {}}') if fails else (200, b'{"id": "chatcmpl-1", "choices": []}')
        headers = [(b"content-type", b"application/json"), (b"content-length", str(len(body)).encode())]
        await send({"type": "http.response.start", "status": status, "headers": headers})
        await send({"type": "http.response.body", "body": body})


def megabytes(pid: int) -> float:
    """What a process has in memory."""
    pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 2**20


@asynccontextmanager
async def serving(upstream: str, folder: Path) -> AsyncIterator[tuple[str, subprocess.Popen[bytes]]]:
    """The address and process of a `pegboard serve` before this provider."""
    config, port = folder / "pegboard.toml", free_port()
    config.write_text(f"{OPTIONS}[llm.upstreams.openai]\nurl = 'http://{upstream}'\n")
    folders = {"PEGBOARD_STATE_DIR": str(folder / "state"), "PEGBOARD_CACHE_DIR": str(folder / "cache")}
    command = [sys.executable, "-m", "pegboard", "serve", "--config", str(config), "--port", str(port)]
    process = subprocess.Popen(command, env=dict(os.environ) | folders)
    try:
        await until(lambda: process.poll() is not None or _answers(port))
        yield f"127.0.0.1:{port}", process
    finally:
        process.send_signal(signal.SIGTERM)
        await asyncio.to_thread(process.wait, 30)


def _answers(port: int) -> bool:
    try:
        return httpx2.get(f"http://127.0.0.1:{port}/healthz", trust_env=False).status_code == 200
    except httpx2.HTTPError:
        return False


async def ask(address: str, times: int, statuses: list[int], wish: int) -> None:
    """So many requests on one connection; one in ten has words that nobody said before."""
    reader, writer = await connect(address)
    for number in range(times):
        said = f"do thing {number % 20}" if number % 10 else f"do thing {number % 20} for the {wish}th of {number}"
        body = json.dumps(asking("openai_chat", said, JOBS)).encode()
        writer.write(request("/openai/v1/chat/completions", body).replace(b"connection: close\r\n", b""))
        head = await reader.readuntil(b"\r\n\r\n")
        statuses.append(int(head.split()[1]))
        length = next(int(line.split(b":")[1]) for line in head.lower().split(b"\r\n") if b"content-length" in line)
        await reader.readexactly(length)
    writer.close()


async def round_of(address: str, requests: int, wish: int) -> list[int]:
    statuses: list[int] = []
    async with asyncio.TaskGroup() as group:
        for client in range(CLIENTS):
            group.create_task(ask(address, requests // CLIENTS, statuses, wish * CLIENTS + client))
    return statuses


@pytest.mark.skipif(not Path("/proc").exists(), reason="memory is read from /proc")
@pytest.mark.timeout(600)
async def test_many_requests_at_once_make_no_errors_and_leave_no_memory_behind(tmp_path: Path) -> None:
    provider = Failing()
    async with served(provider) as behind, serving(behind, tmp_path) as (address, process):
        await round_of(address, CLIENTS * 16, wish=0)
        warm, failed, answered = megabytes(process.pid), provider.failed, provider.answered

        statuses = await round_of(address, REQUESTS + CLIENTS, wish=1)

        assert set(statuses) == {200, 500}
        assert provider.answered - answered == len(statuses) >= REQUESTS
        assert statuses.count(500) == provider.failed - failed
        assert process.poll() is None
        assert megabytes(process.pid) - warm < SLACK_MB
