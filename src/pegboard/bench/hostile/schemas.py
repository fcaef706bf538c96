"""Schemas that take for ever, against everybody else's requests (D3)."""

from __future__ import annotations

import sys
from pathlib import Path

import httpx2

from pegboard.bench.hostile import evil_server
from pegboard.bench.hostile.served import SLOWEST, Client, Health, Serve

PROGRAM = str(Path(evil_server.__file__).resolve())


async def hostile_schemas(folder: Path) -> Health:
    """How the gateway was while a client called each tool with the arguments that it takes longest with.

    Raises RuntimeError where a call was not answered, or nobody else was.
    """
    serve = Serve(folder, {"evil": {"command": sys.executable, "args": [PROGRAM]}})
    await serve.start()
    try:
        async with httpx2.AsyncClient(trust_env=False, timeout=SLOWEST) as http:
            attacker, victim = await Client(http, serve.base).begin(), await Client(http, serve.base).begin()
            await victim.invoke("fine", {"text": "before"})
            async with serve.watched() as found:
                for name, arguments in evil_server.WORST.items():
                    answer = await attacker.invoke(name, arguments)
                    if f'"text":"{name}"' not in answer.text.replace(" ", ""):
                        raise RuntimeError(f"A call of {name} came back with {answer.status_code}: {answer.text[:200]}")
            await victim.invoke("fine", {"text": "after"})
        await serve.end()
    finally:
        serve.kill()
    return found[0]
