"""Our conformance suite for progressive discovery: what a server declares, lists, filters and digests, in both eras.

Every check runs against a high-level and a low-level server of the SDK, and against FastMCP where it is installed.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import mcp_types as types
import pytest
from mcp import Client, MCPError
from mcp.client.extension import advertise
from mcp.server.lowlevel import Server
from mcp.server.mcpserver import MCPServer
from pydantic import TypeAdapter

import pegboard
from pegboard.compose import default_parts
from pegboard.gateways.mcp.embedded.progressive_discovery import DIGEST, EXTENSION, SETTINGS, digest, digest_of
from pegboard.settings import load_settings
from pegboard.stores import MemoryEmbeddings
from pegboard.testing import FakeEncoder
from pegboard.upstreams.extension_requests import ExtensionRequest

ANY: TypeAdapter[dict[str, Any]] = TypeAdapter(dict[str, Any])
META_TOOLS = ["list_tool_categories", "search_tools", "describe_tools", "invoke_tool"]
GROUPS = {
    "orders": ("list_orders", "cancel_order", "refund_order"),
    "stock": ("count_stock", "order_more_stock"),
    "weather": ("forecast_rain",),
}
DESCRIPTIONS = {name: f"{name.replace('_', ' ').capitalize()}." for names in GROUPS.values() for name in names}
SCHEMA: dict[str, Any] = {"type": "object", "properties": {"of": {"type": "string"}}}

pytestmark = pytest.mark.requirement("022.progressive-discovery")
Result = dict[str, Any]
Connect = Callable[..., Any]


def low_level() -> Server[Any]:
    async def list_tools(_ctx: Any, _params: Any) -> types.ListToolsResult:
        return types.ListToolsResult(
            tools=[
                types.Tool(
                    name=name,
                    description=DESCRIPTIONS[name],
                    input_schema=SCHEMA,
                    _meta={"category": group, "vendor/x": 1},
                )
                for group, names in GROUPS.items()
                for name in names
            ]
        )

    async def call_tool(_ctx: Any, params: types.CallToolRequestParams) -> types.CallToolResult:
        return types.CallToolResult(content=[types.TextContent(text=f"did {params.name}")])

    return Server("shop", on_list_tools=list_tools, on_call_tool=call_tool)


def high_level() -> MCPServer:
    server = MCPServer("shop")
    for group, names in GROUPS.items():
        for name in names:

            def act(of: str = "", name: str = name) -> str:
                return f"did {name}"

            server.add_tool(act, name=name, description=DESCRIPTIONS[name], meta={"category": group, "vendor/x": 1})
    return server


@pytest.fixture(params=[low_level, high_level], ids=["low-level", "MCPServer"])
def connect(request: pytest.FixtureRequest, era: str, tmp_path: Path) -> Connect:
    """A client of a lazy server; ``declares`` is whether it declares the extension."""

    @asynccontextmanager
    async def open_client(*, declares: bool = True, **options: Any) -> AsyncIterator[Client]:
        settings = load_settings(cache_dir=tmp_path, state_dir=tmp_path)
        parts = default_parts(settings, encoder=FakeEncoder(), embeddings=MemoryEmbeddings())
        server = pegboard.lazy(request.param(), parts=parts, **({"eager_tokens": 0, "eager_tools": 0} | options))
        extensions = [advertise(EXTENSION, {})] if declares else []
        async with Client(server, mode=era, cache=None, extensions=extensions) as client:
            yield client

    return open_client


async def asked(client: Client, method: str, **params: Any) -> Result:
    request: Any = ExtensionRequest(method=method, params=params)
    return await client.session.send_request(request, ANY)  # type: ignore[type-var]


async def listed(client: Client, **wanted: Any) -> list[str]:
    return [tool["name"] for tool in (await asked(client, "tools/list", filter=wanted))["tools"]]


async def test_the_extension_is_declared_with_what_it_can(connect: Connect) -> None:
    async with connect() as client:
        assert (client.server_capabilities.extensions or {})[EXTENSION] == SETTINGS
        assert SETTINGS == {
            "groups": True,
            "filters": ["namePatterns", "groups", "query", "limit", "known"],
            "digests": "sha256",
        }


async def test_groups_are_listed_with_what_they_hold(connect: Connect) -> None:
    async with connect() as client:
        found = (await asked(client, "groups/list"))["groups"]
        assert {each["name"]: each["tools"] for each in found} == {name: len(of) for name, of in GROUPS.items()}
        assert [each["name"] for each in found] == sorted(GROUPS)
        assert all(each["description"] for each in found)


async def test_a_group_is_got_whole_with_digests_and_everything_its_tools_have(connect: Connect) -> None:
    async with connect() as client:
        got = await asked(client, "groups/get", name="orders")
        assert got["name"] == "orders"
        assert tuple(tool["name"] for tool in got["tools"]) == GROUPS["orders"]
        for tool in got["tools"]:
            assert tool["description"] == DESCRIPTIONS[tool["name"]]
            assert tool["_meta"] == {"category": "orders", "vendor/x": 1, DIGEST: digest(tool)}
        [group] = [each for each in (await asked(client, "groups/list"))["groups"] if each["name"] == "orders"]
        assert group["digest"] == digest_of(map(digest, got["tools"]))


@pytest.mark.parametrize("name", ["nothing", "", None, 7])
async def test_an_unknown_group_is_an_error_of_the_parameters(connect: Connect, name: object) -> None:
    async with connect() as client:
        with pytest.raises(MCPError) as unknown:
            await asked(client, "groups/get", **({} if name is None else {"name": name}))
        assert unknown.value.error.code == types.INVALID_PARAMS


@pytest.mark.parametrize(
    ("wanted", "expected"),
    [
        ({"namePatterns": ["*_order"]}, ["cancel_order", "refund_order"]),
        ({"namePatterns": ["count_*", "forecast_rain"]}, ["count_stock", "forecast_rain"]),
        ({"groups": ["stock"]}, ["count_stock", "order_more_stock"]),
        ({"groups": ["stock", "orders"], "namePatterns": ["*order*"], "limit": 2}, ["list_orders", "cancel_order"]),
        ({"groups": ["nothing"]}, []),
        ({"namePatterns": []}, []),
    ],
)
async def test_a_list_is_filtered(connect: Connect, wanted: Result, expected: list[str]) -> None:
    async with connect() as client:
        assert await listed(client, **wanted) == expected
        assert await listed(client) == [name for names in GROUPS.values() for name in names]


async def test_a_list_is_filtered_by_what_is_wanted_best_first(connect: Connect) -> None:
    async with connect() as client:
        assert (await listed(client, query="refund order", limit=1)) == ["refund_order"]
        assert (await listed(client, query="refund order", groups=["weather"])) in ([], ["forecast_rain"])


async def test_what_the_client_knows_is_left_out_until_it_changes(connect: Connect) -> None:
    async with connect() as client:
        tools = (await asked(client, "tools/list", filter={}))["tools"]
        known = [tool["_meta"][DIGEST] for tool in tools]
        assert len(set(known)) == len(known)
        assert await listed(client, known=known) == []
        assert await listed(client, known=known[1:]) == [tools[0]["name"]]


@pytest.mark.parametrize(
    "wanted", [7, [], {"namePatterns": "x"}, {"other": 1}, {"limit": 0}, {"query": ""}, {"namePatterns": [""]}]
)
async def test_a_filter_that_is_none_is_an_error_of_the_parameters(connect: Connect, wanted: object) -> None:
    async with connect() as client:
        with pytest.raises(MCPError) as wrong:
            await asked(client, "tools/list", filter=wanted)
        assert wrong.value.error.code == types.INVALID_PARAMS
        assert "filter" in wrong.value.error.message


async def test_without_a_filter_the_list_stays_as_it_is(connect: Connect) -> None:
    async with connect() as client:
        assert [tool.name for tool in (await client.list_tools()).tools] == META_TOOLS


async def test_what_a_filter_listed_is_called_by_its_name(connect: Connect) -> None:
    async with connect() as client:
        [name] = await listed(client, namePatterns=["refund*"])
        result = await client.call_tool(name, {})
        assert result.content[0].text == "did refund_order"


async def test_clients_that_do_not_declare_it_get_none_of_it(connect: Connect, era: str) -> None:
    async with connect(declares=False) as client:
        for method in ("groups/list", "groups/get"):
            with pytest.raises(MCPError) as refused:
                await asked(client, method, name="orders")
            expected = types.METHOD_NOT_FOUND if era == "legacy" else types.MISSING_REQUIRED_CLIENT_CAPABILITY
            assert refused.value.error.code == expected
        assert await listed(client, namePatterns=["*"]) == META_TOOLS


async def test_pages_of_a_filtered_list_are_followed(connect: Connect, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pegboard.gateways.mcp.transport.results.PAGE_BYTES", 400)
    async with connect() as client:
        found: list[str] = []
        more: Result = {}
        while True:
            page = await asked(client, "tools/list", filter={"groups": ["orders", "stock"]}, **more)
            found += [tool["name"] for tool in page["tools"]]
            if "nextCursor" not in page:
                break
            more = {"cursor": page["nextCursor"]}
        assert found == [*GROUPS["orders"], *GROUPS["stock"]]
        assert more, "there was more than one page"
