"""Tools with an interface (MCP Apps): hosts that show interfaces are listed them, and read them at the same address."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest
from mcp import Client
from mcp.client.extension import advertise

from pegboard import Settings
from pegboard.compose import default_parts
from pegboard.gateways.mcp import open_gateway
from pegboard.gateways.mcp.gateway.app_tools import app_resource, for_apps_alone
from pegboard.gateways.mcp.transport.gateway_server import wire
from pegboard.model import Tool, ToolId
from pegboard.settings.server_spec import ServerSpec
from pegboard.stores import MemoryEmbeddings
from pegboard.testing import FakeEncoder
from pegboard.upstreams.extension_requests import APP_SETTINGS, APPS

SERVER = str(Path(__file__).parents[2] / "servers" / "apps.py")
INTERFACE = "ui://clock/app.html"
META_TOOLS = 4


@pytest.mark.parametrize("mode", ["auto", "legacy"])
async def test_a_host_of_apps_is_listed_them_whatever_the_exposure(tmp_path: Path, mode: str) -> None:
    spec = ServerSpec(name="clock", command=sys.executable, args=(SERVER,))
    options: dict[str, Any] = {"cache_dir": tmp_path, "start_wait": 60.0, "connect_timeout": 60.0, "often_used": 0}
    settings = Settings(servers={"clock": spec}, exposure="static", **options)
    parts = default_parts(settings, encoder=FakeEncoder(), embeddings=MemoryEmbeddings())
    async with open_gateway(settings, parts) as gateway:
        host = Client(wire(gateway), mode=mode, cache=None, extensions=[advertise(APPS, APP_SETTINGS)])
        async with host, Client(wire(gateway), mode=mode, cache=None) as other:
            listed = (await host.list_tools()).tools
            assert [tool.name for tool in listed[META_TOOLS:]] == ["tell_time", "wind_clock"]
            assert [(tool.meta or {})["ui"]["resourceUri"] for tool in listed[META_TOOLS:]] == [INTERFACE] * 2
            assert len((await other.list_tools()).tools) == META_TOOLS
            assert INTERFACE in [str(each.uri) for each in (await host.list_resources()).resources]
            read = await host.read_resource(INTERFACE)
            assert (read.contents[0].uri, read.contents[0].mime_type) == (INTERFACE, "text/html;profile=mcp-app")
            assert (await host.call_tool("wind_clock", {})).content[0].text == "wound"  # type: ignore[union-attr]
            found = await other.call_tool("search_tools", {"query": "clock time wind"})
            names = [each["name"] for each in json.loads(found.content[0].text)["tools"]]  # type: ignore[union-attr]
            assert "tell_time" in names
            assert "wind_clock" not in names


async def test_tools_for_apps_keep_to_the_budget_of_a_list(tmp_path: Path) -> None:
    spec = ServerSpec(name="clock", command=sys.executable, args=(SERVER,))
    options: dict[str, Any] = {"cache_dir": tmp_path, "start_wait": 60.0, "connect_timeout": 60.0, "often_used": 0}
    settings = Settings(servers={"clock": spec}, exposure="static", list_budget=1, **options)
    parts = default_parts(settings, encoder=FakeEncoder(), embeddings=MemoryEmbeddings())
    extensions = [advertise(APPS, APP_SETTINGS)]
    async with (
        open_gateway(settings, parts) as gateway,
        Client(wire(gateway), cache=None, extensions=extensions) as host,
    ):
        assert len((await host.list_tools()).tools) == META_TOOLS


def test_an_interface_is_known_in_its_present_form_and_in_the_one_before() -> None:
    now = {"ui": {"resourceUri": INTERFACE, "visibility": ["model", "app"]}}
    earlier = {"ui/resourceUri": INTERFACE}
    no_interface: list[Any] = [None, [], {"ui": "x"}, {"ui": {"resourceUri": "https://a.example"}}]

    def tool(meta: Any) -> Tool:
        return Tool(id=ToolId("clock", "tell"), definition={"name": "tell", "_meta": meta})

    assert [app_resource(tool(meta)) for meta in (now, earlier)] == [INTERFACE, INTERFACE]
    assert [app_resource(tool(meta)) for meta in no_interface] == [None] * 4
    assert [for_apps_alone(tool({"ui": {"visibility": each}})) for each in (["app"], ["model", "app"], [], None)] == [
        *(True, False, False, False)
    ]
