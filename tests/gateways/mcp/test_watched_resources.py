"""Servers are told when nobody watches their resources any more, however those who did have left."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from mcp import Client

from pegboard import Settings
from pegboard.compose import default_parts
from pegboard.gateways.mcp import open_gateway
from pegboard.gateways.mcp.gateway.gateway import Gateway
from pegboard.gateways.mcp.transport.gateway_server import wire
from pegboard.settings.server_spec import ServerSpec
from pegboard.stores import MemoryEmbeddings
from pegboard.testing import FakeEncoder
from processes import until

SERVER = str(Path(__file__).parents[2] / "servers" / "watched.py")
URIS = [f"note://watched/{name}" for name in ("one", "two", "three")]

pytestmark = pytest.mark.filterwarnings("ignore::mcp.MCPDeprecationWarning")

Opening = Callable[..., AbstractAsyncContextManager[Gateway]]


@pytest.fixture
def opened(tmp_path: Path) -> Opening:
    """Opens a gateway before a server whose resources can be watched."""

    @asynccontextmanager
    async def gateway(*how: str) -> AsyncIterator[Gateway]:
        arguments = (SERVER, str(seen_in(tmp_path)), *how)
        spec = ServerSpec(name="watched", command=sys.executable, args=arguments)
        options: dict[str, Any] = {"cache_dir": tmp_path, "state_dir": tmp_path, "start_wait": 20.0}
        settings = Settings(servers={"watched": spec}, **options)
        parts = default_parts(settings, encoder=FakeEncoder(), embeddings=MemoryEmbeddings())
        async with open_gateway(settings, parts) as made:
            yield made

    return gateway


def seen_in(folder: Path) -> Path:
    return folder / "seen.txt"


def asked(folder: Path, what: str) -> Counter[str]:
    """How often the server was asked to do this, by address."""
    lines = seen_in(folder).read_text().splitlines() if seen_in(folder).exists() else []
    return Counter(line.split()[1] for line in lines if line.split()[0] == what)


async def test_a_stream_that_its_client_closes_ends_what_it_watched_at_the_server(
    opened: Opening, tmp_path: Path
) -> None:
    async with opened() as gateway, Client(wire(gateway), mode="auto", cache=None) as client:
        async with client.listen(resource_subscriptions=URIS):
            await until(lambda: asked(tmp_path, "subscribe") == Counter(URIS))
        await until(lambda: asked(tmp_path, "unsubscribe") == Counter(URIS))
        assert gateway.resources._watchers == {}


async def test_a_connection_that_ends_ends_what_its_session_watched(opened: Opening, tmp_path: Path) -> None:
    async with opened() as gateway, Client(wire(gateway), mode="legacy") as other:
        async with Client(wire(gateway), mode="legacy") as client:
            for uri in URIS:
                await client.subscribe_resource(uri)
            await other.subscribe_resource(URIS[0])
        await until(lambda: asked(tmp_path, "unsubscribe") == Counter(URIS[1:]))
        assert list(gateway.resources._watchers) == URIS[:1]


async def test_a_board_that_closes_ends_what_its_clients_watched(opened: Opening, tmp_path: Path) -> None:
    async with opened() as gateway, Client(wire(gateway), mode="legacy") as client:
        for uri in URIS:
            await client.subscribe_resource(uri)
        gateway.resources.close()
        await until(lambda: asked(tmp_path, "unsubscribe") == Counter(URIS))


async def test_a_session_ends_whole_although_the_server_does_not_end_what_it_watched(
    opened: Opening, tmp_path: Path
) -> None:
    async with opened("refuses") as gateway:
        await gateway.view.started()
        for uri in URIS:
            await gateway.resources.subscribe("session", uri, None)
        await gateway.book.update("session", lambda session: session)
        await gateway.end_session("session")
        found = await gateway.book.find("session")

        assert asked(tmp_path, "unsubscribe") == Counter(URIS)
        assert gateway.resources._watchers == {}
        assert found is None
