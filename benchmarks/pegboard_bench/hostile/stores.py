"""A gateway that crashes and is back at once, and a store that does: what becomes of the sessions (D9)."""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit, urlunsplit

import httpx2

from pegboard_bench.hostile import evil_server
from pegboard_bench.hostile.served import PAUSE, SLOWEST, Client, Serve

PROGRAM = str(Path(evil_server.__file__).resolve())
SESSIONS = 54
AWAY = 1.0
"""Seconds that a store is away."""
LONGEST = 60.0
OK = 200
Stream = tuple[asyncio.StreamReader, asyncio.StreamWriter]


@dataclass(frozen=True, slots=True, kw_only=True)
class Restarted:
    """``lost`` sessions did not go on; ``seconds`` is the longest time that one was refused."""

    lost: int
    seconds: float


async def gateway_restarted(folder: Path, state: str, *, prefix: str) -> Restarted:
    """The gateway is killed, and starts again at the same address, on the store at the address ``state``.

    What it leaves there is under ``prefix``, on PostgreSQL in a schema of that name.
    """
    serve = _serve(folder, state, prefix)
    await serve.start()
    try:
        async with _many() as http:
            clients = await _begun(http, serve)
            serve.kill()
            await serve.start()
            return _summed(await asyncio.gather(*map(_until_answered, clients)))
    finally:
        serve.kill()


async def store_restarted(folder: Path, state: str, *, prefix: str) -> Restarted:
    """The store at the address ``state`` breaks every connection, refuses others for a second, and is back."""
    async with broken(state) as link:
        serve = _serve(folder, link.url, prefix)
        await serve.start()
        try:
            async with _many() as http:
                clients = await _begun(http, serve)
                working = [asyncio.create_task(_until_answered(client, link.back)) for client in clients]
                await link.break_off()
                return _summed(await asyncio.gather(*working))
        finally:
            serve.kill()


@dataclass
class Link:
    """A store as it is reached through this process, which can break it off."""

    url: str = ""
    here: bool = True
    back: asyncio.Event = field(default_factory=asyncio.Event)
    writers: set[asyncio.StreamWriter] = field(default_factory=set)

    async def break_off(self) -> None:
        self.here = False
        for each in list(self.writers):
            each.transport.abort()
        await asyncio.sleep(AWAY)
        self.here = True
        self.back.set()


@asynccontextmanager
async def broken(state: str) -> AsyncIterator[Link]:
    """Another address of the store."""
    parts, link = urlsplit(state), Link()

    async def connect(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if not link.here:
            writer.transport.abort()
            return
        behind = await asyncio.open_connection(parts.hostname or "127.0.0.1", parts.port)
        link.writers |= {writer, behind[1]}
        with suppress(asyncio.CancelledError):  # at the end of the scenario, where nobody is told
            await asyncio.gather(_pump(reader, behind[1]), _pump(behind[0], writer))
        link.writers -= {writer, behind[1]}

    server = await asyncio.start_server(connect, "127.0.0.1", 0)
    user = f"{parts.netloc.rpartition('@')[0]}@" if "@" in parts.netloc else ""
    address = f"{user}127.0.0.1:{server.sockets[0].getsockname()[1]}"
    link.url = urlunsplit(parts._replace(netloc=address))
    try:
        yield link
    finally:
        server.close()


async def _pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with suppress(OSError):
        while data := await reader.read(65_536):
            writer.write(data)
            await writer.drain()
    writer.close()


async def _begun(http: httpx2.AsyncClient, serve: Serve) -> list[Client]:
    clients = [await Client(http, serve.base).begin() for _ in range(SESSIONS)]
    for client in clients:
        answer = await client.invoke("fine", {"text": "before"})
        if answer.status_code != OK:
            raise RuntimeError(f"A session could not begin: {answer.status_code} {answer.text[:200]}")
    return clients


async def _until_answered(client: Client, back: asyncio.Event | None = None) -> float | None:
    """Seconds from the first request to the last that was refused; with ``back``, asked until a while after that.

    None where it was refused to the end.
    """
    began = time.monotonic()
    refused = 0.0
    while time.monotonic() - began < LONGEST:
        if await _answered(client):
            if back is None or (back.is_set() and time.monotonic() - began > 3 * AWAY):
                return refused
        else:
            refused = time.monotonic() - began
        await asyncio.sleep(PAUSE)
    return None


async def _answered(client: Client) -> bool:
    try:
        return (await client.invoke("fine", {"text": "again"})).status_code == OK
    except httpx2.HTTPError:
        return False


def _summed(told: list[float | None]) -> Restarted:
    return Restarted(lost=told.count(None), seconds=max((each for each in told if each is not None), default=LONGEST))


def _serve(folder: Path, state: str, prefix: str) -> Serve:
    shared = {"url": state, "prefix": prefix}
    return Serve(folder, {"fine": {"command": sys.executable, "args": [PROGRAM]}}, state=shared)


@asynccontextmanager
async def _many(**options: Any) -> AsyncIterator[httpx2.AsyncClient]:
    limits = httpx2.Limits(max_connections=2 * SESSIONS)
    async with httpx2.AsyncClient(trust_env=False, timeout=SLOWEST, limits=limits, **options) as http:
        yield http
