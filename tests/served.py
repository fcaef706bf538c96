"""A gateway that serves in the test's own process: tests/gateways/conftest.py makes it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx2

from model_upstream import ModelUpstream
from pegboard import Settings
from pegboard.gateways.drain import DrainableServer
from pegboard.gateways.mcp.transport.config_reload import Source
from pegboard.gateways.serve import serving
from pegboard.protocols import EventSink
from pegboard.stores import MemoryEmbeddings
from pegboard.testing import FakeEncoder


@dataclass
class Gateway:
    """A gateway that serves, and a client of it."""

    server: DrainableServer
    http: httpx2.AsyncClient
    ending: asyncio.Task[None]


OpenGateway = Callable[..., AbstractAsyncContextManager[Gateway]]


@asynccontextmanager
async def opened_gateway(
    upstream: ModelUpstream,
    folder: Path,
    sinks: Sequence[EventSink] = (),
    *,
    llm: dict[str, Any] | None = None,
    parts: dict[str, Any] | None = None,
    **options: Any,
) -> AsyncIterator[Gateway]:
    """A gateway with ``upstream`` as openai, anthropic and gemini, its state in ``folder``."""
    upstreams = {name: {"url": upstream.url, "format": name} for name in ("openai", "anthropic", "gemini")}
    own = {"port": 0, "cache_dir": folder, "state_dir": folder}
    models = {"upstreams": upstreams, "patience": 20, "filter_timeout": 20} | (llm or {})
    replaced = {"encoder": FakeEncoder(), "embeddings": MemoryEmbeddings()} | (parts or {})
    listening = asyncio.Event()
    async with serving(
        Settings(**(own | {"llm": models} | options)),
        Source(),
        started=lambda url: listening.set(),
        sinks=sinks,
        **replaced,
    ) as server:
        ending = asyncio.create_task(server.until_end())
        try:
            await listening.wait()
            base = server.url.removesuffix("/mcp")
            async with httpx2.AsyncClient(trust_env=False, timeout=60, base_url=base) as http:
                yield Gateway(server, http, ending)
        finally:
            server.end(0)
            server.end(0)
            await ending
