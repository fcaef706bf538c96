"""How long `/healthz` of a gateway waits while hostile programs run in it."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from pathlib import Path

import httpx2

from pegboard_bench.hostile.served import Client, Serve

AT_ONCE = 4
"""Programs of one kind that run at the same time."""
HOSTILE: Mapping[str, str] = {
    "idle": "",
    "loop": "while True: pass",
    "memory": "found = []\nwhile True: found.append('x' * 1000)",
    "output": "while True: print('x' * 1000)",
    "calls": "import asyncio\nawait asyncio.gather(*[get_current_time(timezone='UTC') for i in range(5000)])",
    "value": "[[str(i) for i in range(100)] for j in range(500)]",
    "deep": "found = []\nfor i in range(100000): found = [found]\nfound",
}


async def longest_waits(folder: Path, demo: Path) -> dict[str, float]:
    """Seconds of the longest answer, by kind of program."""
    entry = json.loads((demo / "mcp.json").read_text())["mcpServers"]["time"]
    serve = Serve(folder, {"time": entry}, programs={"mode": "on", "seconds": 3})
    found: dict[str, float] = {}
    await serve.start()
    async with httpx2.AsyncClient(timeout=120) as http:
        client = await Client(http, serve.base).begin()
        await _run(client, "await get_current_time(timezone='UTC')")
        with serve.watched() as watch:
            for name, program in HOSTILE.items():
                watch.begin()
                await asyncio.gather(
                    *[_run(client, program) for _ in range(AT_ONCE)] if program else [asyncio.sleep(3)]
                )
                found[name] = watch.longest
    await serve.end()
    return found


async def _run(client: Client, program: str) -> None:
    answer = await client.post("tools/call", {"name": "run_program", "arguments": {"program": program}})
    answer.raise_for_status()
