"""Servers that ask for roots outside any call: of one client they see its own, of several none."""

from __future__ import annotations

import json
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import mcp_types as types
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

SERVER = str(Path(__file__).parents[2] / "servers" / "asks_roots.py")
ROOTS = "roots.json"

pytestmark = pytest.mark.requirement("B11")


@asynccontextmanager
async def gateway_in(folder: Path) -> AsyncIterator[Gateway]:
    """Before a server that asks for roots."""
    (folder / ROOTS).write_text("")
    spec = ServerSpec(name="asks", command=sys.executable, args=(SERVER, str(folder / ROOTS)))
    options: dict[str, Any] = {"cache_dir": folder, "state_dir": folder, "start_wait": 20.0}
    settings = Settings(servers={"asks": spec}, **options)
    parts = default_parts(settings, encoder=FakeEncoder(), embeddings=MemoryEmbeddings())
    async with open_gateway(settings, parts) as opened:
        yield opened


def client(gateway: Gateway, roots: list[str] | None) -> Client:
    """One of the handshake era with these roots, which may be changed; None for a client that has none."""

    async def said(_ctx: Any) -> types.ListRootsResult:
        return types.ListRootsResult(roots=[types.Root(uri=uri) for uri in roots or ()])  # type: ignore[arg-type]

    return Client(wire(gateway), mode="legacy", list_roots_callback=None if roots is None else said)


async def seen(folder: Path, expected: list[str]) -> None:
    """Wait until the server has heard of these roots."""
    await until(lambda: json.loads((folder / ROOTS).read_text() or "0") == expected)


async def test_a_server_that_asks_on_connect_sees_the_roots_of_the_only_client(tmp_path: Path) -> None:
    roots = ["file:///work"]
    async with gateway_in(tmp_path) as gateway, client(gateway, roots) as only:
        await seen(tmp_path, ["file:///work"])
        roots[:] = ["file:///elsewhere", "file:///more"]
        await only.session.send_notification(types.RootsListChangedNotification())
        await seen(tmp_path, ["file:///elsewhere", "file:///more"])


async def test_of_several_clients_it_sees_none_and_when_the_others_have_left_those_of_the_one(tmp_path: Path) -> None:
    async with gateway_in(tmp_path) as gateway, client(gateway, ["file:///mine"]):
        await seen(tmp_path, ["file:///mine"])
        async with client(gateway, ["file:///theirs"]):
            await seen(tmp_path, [])
        await seen(tmp_path, ["file:///mine"])


async def test_a_client_without_roots_is_not_asked_and_hides_those_of_another(tmp_path: Path) -> None:
    async with gateway_in(tmp_path) as gateway, client(gateway, None):
        await seen(tmp_path, [])
        async with client(gateway, ["file:///mine"]):
            await seen(tmp_path, [])
