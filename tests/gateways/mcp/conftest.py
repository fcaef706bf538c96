from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from mcp import Client

from pegboard import Settings
from pegboard.compose import default_parts
from pegboard.gateways.mcp import open_gateway
from pegboard.gateways.mcp.server import wire
from pegboard.server_spec import ServerSpec
from pegboard.stores import MemoryEmbeddings, MemoryEvents
from pegboard.testing import FakeEncoder
from upstream_specs import fleet_of, scripted

__all__ = ["fleet_of"]

OpenClient = Callable[..., AbstractAsyncContextManager[Client]]


@pytest.fixture(params=["auto", "legacy"])
def era(request: pytest.FixtureRequest) -> str:
    """The SDK's mode for a client of revision 2026-07-28, and for one of the handshake era."""
    return str(request.param)


@pytest.fixture
def client_of(events: MemoryEvents, encoder: FakeEncoder, tmp_path: Path, era: str) -> OpenClient:
    """A real SDK client, in memory, of a gateway before real servers."""

    @asynccontextmanager
    async def connect(*specs: ServerSpec, **options: Any) -> AsyncIterator[Client]:
        servers = {spec.name: spec for spec in specs or (scripted(),)}
        defaults: dict[str, Any] = {
            "cache_dir": tmp_path,
            "start_wait": 20.0,
            "call_timeout": 20.0,
            "exposure": "static",
        }
        settings = Settings(servers=servers, **(defaults | options))
        parts = default_parts(settings, encoder=encoder, embeddings=MemoryEmbeddings(), events=events)
        async with open_gateway(settings, parts) as gateway, Client(wire(gateway), mode=era, cache=None) as client:
            yield client

    return connect
