"""Many sessions that nobody uses, when the gateway is told to end (D13)."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

import httpx2

from pegboard_bench.hostile import evil_server
from pegboard_bench.hostile.served import SLOWEST, Client, Serve

PROGRAM = str(Path(evil_server.__file__).resolve())
AT_ONCE = 20


async def ended_with_idle(folder: Path, sessions: int) -> float:
    """Seconds from SIGTERM to the end of the process, with so many sessions of the handshake era."""
    serve = Serve(folder, {"fine": {"command": sys.executable, "args": [PROGRAM]}})
    await serve.start()
    try:
        limits = httpx2.Limits(max_connections=2 * AT_ONCE)
        async with httpx2.AsyncClient(trust_env=False, timeout=SLOWEST, limits=limits) as http:
            for begun in range(0, sessions, AT_ONCE):
                some = range(min(AT_ONCE, sessions - begun))
                await asyncio.gather(*(Client(http, serve.base).begin() for _ in some))
        return await serve.end()
    finally:
        serve.kill()
