"""Schemas that take for ever, against everybody else's requests (D3)."""

from __future__ import annotations

import sys
from pathlib import Path

import httpx2

from pegboard_bench.hostile import evil_server
from pegboard_bench.hostile.served import SLOWEST, Client, Serve

PROGRAM = str(Path(evil_server.__file__).resolve())


async def hostile_schemas(folder: Path) -> tuple[float, float]:
    """Call each tool with the arguments that it takes longest with; returns the longest time that `/healthz` did not
    answer, in seconds, and the memory over idle, in megabytes, workers included.

    Raises RuntimeError where a call was not answered, or nobody else was.
    """
    serve = Serve(folder, {"evil": {"command": sys.executable, "args": [PROGRAM]}})
    await serve.start()
    try:
        async with httpx2.AsyncClient(trust_env=False, timeout=SLOWEST) as http:
            attacker, victim = await Client(http, serve.base).begin(), await Client(http, serve.base).begin()
            await victim.invoke("fine", {"text": "before"})
            with serve.watched() as watch:
                for name, arguments in evil_server.WORST.items():
                    answer = await attacker.invoke(name, arguments)
                    if f'"text":"{name}"' not in answer.text.replace(" ", ""):
                        raise RuntimeError(f"A call of {name} came back with {answer.status_code}: {answer.text[:200]}")
                found = watch.longest, watch.peak_over_idle_mb
            await victim.invoke("fine", {"text": "after"})
        await serve.end()
    finally:
        serve.kill()
    return found
