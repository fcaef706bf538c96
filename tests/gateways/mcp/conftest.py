from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from types import MappingProxyType
from typing import Any

import pytest
from mcp import Client

from doors import Listener, at_rest, door_on
from pegboard import Settings
from pegboard.compose import default_parts
from pegboard.gateways.mcp import open_gateway
from pegboard.gateways.mcp.gateway.gateway import Gateway
from pegboard.gateways.mcp.gateway.host import Host, open_host
from pegboard.gateways.mcp.transport.gateway_server import wire
from pegboard.settings import load_settings
from pegboard.settings.server_spec import ServerSpec
from pegboard.stores import MemoryEmbeddings, MemoryEvents
from pegboard.testing import FakeEncoder
from upstream_specs import fleet_of, scripted

__all__ = ["fleet_of"]

OpenClient = Callable[..., AbstractAsyncContextManager[Client]]
OpenDoor = Callable[..., AbstractAsyncContextManager[tuple[str, Host]]]
OpenListener = Callable[..., AbstractAsyncContextManager[tuple[Listener, Gateway]]]


@pytest.fixture(params=["auto", "legacy"])
def era(request: pytest.FixtureRequest) -> str:
    """The SDK's mode for a client of revision 2026-07-28, and for one of the handshake era."""
    return str(request.param)


@pytest.fixture
def client_of(events: MemoryEvents, encoder: FakeEncoder, tmp_path: Path, era: str) -> OpenClient:
    """A real SDK client, in memory, of a gateway before real servers. ``parts`` replace those of the gateway; ``asked``
    answers questions to the user."""

    @asynccontextmanager
    async def connect(
        *specs: ServerSpec, parts: Mapping[str, Any] = MappingProxyType({}), asked: Any = None, **options: Any
    ) -> AsyncIterator[Client]:
        servers = {spec.name: spec for spec in specs or (scripted(),)}
        defaults: dict[str, Any] = {
            "cache_dir": tmp_path,
            "start_wait": 20.0,
            "call_timeout": 20.0,
            "exposure": "static",
        }
        settings = Settings(servers=servers, **(defaults | options))
        fakes: dict[str, Any] = {"encoder": encoder, "embeddings": MemoryEmbeddings(), "events": events}
        made = default_parts(settings, **(fakes | dict(parts)))
        async with (
            open_gateway(settings, made) as gateway,
            Client(wire(gateway), mode=era, cache=None, elicitation_callback=asked) as client,
        ):
            yield client

    return connect


@pytest.fixture
def open_door(events: MemoryEvents, encoder: FakeEncoder, tmp_path: Path) -> OpenDoor:
    """The HTTP door of a host before real servers: its address, and the host. Sessions are kept in ``tmp_path``.

    ``replaced`` are the parts that are not the default ones.
    """

    @asynccontextmanager
    async def serve(
        *specs: ServerSpec, replaced: Mapping[str, Any] = MappingProxyType({}), **options: Any
    ) -> AsyncIterator[tuple[str, Host]]:
        servers = {spec.name: spec for spec in specs or (scripted(),)}
        defaults: dict[str, Any] = {
            "cache_dir": tmp_path,
            "state_dir": tmp_path,
            "start_wait": 20.0,
            "call_timeout": 20.0,
            "exposure": "dynamic",
            "eager_tools": 0,
            "eager_tokens": 0,
        }
        settings = Settings(servers=servers, **(defaults | options))
        fakes: dict[str, Any] = {"encoder": encoder, "embeddings": MemoryEmbeddings(), "events": events}
        parts = default_parts(settings, **(fakes | dict(replaced)))
        try:
            async with open_host(settings, parts) as host, door_on(host) as url:
                await host.gateway().view.started()
                await at_rest(host.gateway())
                yield url, host
        finally:
            await parts.close()

    return serve


@pytest.fixture
def listening(encoder: FakeEncoder, tmp_path: Path) -> OpenListener:
    """A client in memory, of a gateway before real servers."""

    @asynccontextmanager
    async def connect(
        *specs: ServerSpec, name: str = "opencode", parts: dict[str, Any] | None = None, **options: Any
    ) -> AsyncIterator[tuple[Listener, Gateway]]:
        servers = {spec.name: spec for spec in specs or (scripted(),)}
        defaults: dict[str, Any] = {"cache_dir": tmp_path, "state_dir": tmp_path, "start_wait": 20.0}
        defaults |= {"eager_tools": 0, "eager_tokens": 0, "exposure": "dynamic", "push": True}
        settings = load_settings(servers=servers, **(defaults | options))
        fakes: dict[str, Any] = {"encoder": encoder, "embeddings": MemoryEmbeddings()}
        async with open_gateway(settings, default_parts(settings, **(fakes | (parts or {})))) as gateway:
            await gateway.view.started()
            await at_rest(gateway)
            listener = Listener(wire(gateway), name)
            async with listener.client:
                yield listener, gateway

    return connect
