"""`pegboard serve` in this process, before a provider of models of the test's own."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx2
import pytest

from model_upstream import ModelUpstream, model_upstream
from pegboard import Settings
from pegboard.gateways.mcp.transport.config_reload import Source
from pegboard.gateways.serve import serving
from pegboard.stores import MemoryEmbeddings, MemoryEvents
from pegboard.testing import FakeEncoder
from served import Gateway, OpenGateway


@pytest.fixture
async def upstream() -> AsyncIterator[ModelUpstream]:
    async with model_upstream() as opened:
        yield opened


@pytest.fixture
def gateway_of(upstream: ModelUpstream, events: MemoryEvents, tmp_path: Path) -> OpenGateway:
    """A gateway with ``upstream`` as openai, anthropic and gemini: options of its own, parts by `parts`."""

    @asynccontextmanager
    async def serve(
        *, llm: dict[str, Any] | None = None, parts: dict[str, Any] | None = None, **options: Any
    ) -> AsyncIterator[Gateway]:
        upstreams = {name: {"url": upstream.url, "format": name} for name in ("openai", "anthropic", "gemini")}
        own = {"port": 0, "cache_dir": tmp_path, "state_dir": tmp_path}
        models = {"upstreams": upstreams, "patience": 20, "filter_timeout": 20} | (llm or {})
        replaced = {"encoder": FakeEncoder(), "embeddings": MemoryEmbeddings()} | (parts or {})
        listening = asyncio.Event()
        async with serving(
            Settings(**(own | {"llm": models} | options)),
            Source(),
            started=lambda url: listening.set(),
            sinks=[events],
            **replaced,
        ) as server:
            ending = asyncio.create_task(server.until_end())
            try:
                await listening.wait()
                base = server.url.removesuffix("/mcp")
                async with httpx2.AsyncClient(trust_env=False, timeout=30, base_url=base) as http:
                    yield Gateway(server, http, ending)
            finally:
                server.end(0)
                server.end(0)
                await ending

    return serve
