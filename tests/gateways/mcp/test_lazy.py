"""Lazy tools in a server's own process, as clients see them: in memory, on stdio, over HTTP, in both eras."""

from __future__ import annotations

import gc
import json
import os
import sys
import weakref
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import mcp_types as types
import pytest
from mcp import Client, MCPError
from mcp.client.extension import advertise
from mcp.client.stdio import StdioServerParameters, stdio_client
from mcp.server.context import CallNext, HandlerResult, ServerRequestContext
from mcp.server.lowlevel import Server
from mcp.server.mcpserver import Context, MCPServer
from mcp.server.mcpserver.resolve import Elicit, Resolve
from pydantic import BaseModel, TypeAdapter

import pegboard
from pegboard.compose import Parts, default_parts
from pegboard.errors import ConfigError
from pegboard.gateways.mcp.embedded.progressive_discovery import DIGEST, EXTENSION
from pegboard.settings import load_settings
from pegboard.stores import MemoryEmbeddings, MemoryEvents
from pegboard.testing import FakeEncoder
from pegboard.upstreams.extension_requests import ExtensionRequest
from processes import listening, until

ROOT = Path(__file__).parents[3]
EXAMPLE = ROOT / "examples" / "lazy_server.py"
HOOKED_FASTMCP = ROOT / "tests" / "servers" / "hooked_fastmcp.py"
FASTMCP = ROOT / ".demo" / "clients" / "fastmcp" / "bin"
META_TOOLS = ["list_tool_categories", "search_tools", "describe_tools", "invoke_tool"]
DYNAMIC = types.Implementation(name="Visual Studio Code", version="1")
"""A client that lists again when it is told."""

Lazy = Callable[..., Any]


class Colour(BaseModel):
    name: str


async def ask_for_colour() -> Elicit[Colour]:
    return Elicit("Which colour?", Colour)


def shop(**options: Any) -> MCPServer:
    server = MCPServer("shop", version="3.1", instructions="A shop.", **options)

    @server.tool()
    def echo(text: str) -> str:
        """Echo a text back."""
        return text

    @server.tool()
    async def count(ctx: Context, to: int) -> int:
        """Count up and report progress."""
        for step in range(to):
            await ctx.report_progress(step + 1, to, f"step {step + 1}")
        return to

    @server.tool()
    def paint(colour: Annotated[Colour, Resolve(ask_for_colour)]) -> str:
        """Paint the house in a colour that the user is asked for."""
        return f"painted {colour.name}"

    @server.tool()
    def fails(why: str) -> str:
        """Fail for a reason."""
        raise ValueError(why)

    @server.tool()
    def refuses() -> str:
        """Answer with an error of the protocol."""
        raise MCPError(-32050, "custom", {"why": "test"})

    for number in range(20):
        add_shelf(server, number)
    return server


def add_shelf(server: MCPServer, number: int, about: str = "Look at shelf number") -> None:
    @server.tool(name=f"shelf_{number}", description=f"{about} {number}.")
    def shelf(item: str) -> str:
        return f"{item} on {number}"


@pytest.fixture
def parts(encoder: FakeEncoder, events: MemoryEvents, tmp_path: Path) -> Parts:
    settings = load_settings(cache_dir=tmp_path, state_dir=tmp_path)
    return default_parts(settings, encoder=encoder, embeddings=MemoryEmbeddings(), events=events)


@pytest.fixture
def lazy(parts: Parts) -> Lazy:
    """The hook with fakes, on a server that is not small."""

    def hook(server: Any, **options: Any) -> Any:
        return pegboard.lazy(server, parts=parts, **({"eager_tokens": 0, "eager_tools": 0} | options))

    return hook


async def names(client: Client) -> list[str]:
    return [tool.name for tool in (await client.list_tools()).tools]


async def found(client: Client, query: str, **more: Any) -> list[str]:
    answer = await client.call_tool("search_tools", {"query": query, **more})
    return [each["name"] for each in json.loads(text(answer))["tools"]]


def text(result: types.CallToolResult) -> str:
    return "".join(part.text for part in result.content if isinstance(part, types.TextContent))


def plain(result: BaseModel) -> dict[str, Any]:
    return result.model_dump(mode="json", by_alias=True)


async def choose_blue(_context: Any, params: types.ElicitRequestParams) -> types.ElicitResult:
    assert params.message == "Which colour?"
    return types.ElicitResult(action="accept", content={"name": "blue"})


@pytest.mark.requirement("001.alg1")
async def test_a_server_may_be_routed_and_learns_from_what_is_executed(lazy: Lazy, era: str) -> None:
    server = lazy(shop(), exposure="route")

    async def best(client: Client) -> dict[str, Any]:
        answer = await client.call_tool("route_tools", {"subtask": {"text": "answer with an error of the protocol"}})
        return dict(json.loads(text(answer))["tools"][0])

    async with Client(server, mode=era, cache=None) as client:
        assert await names(client) == ["route_tools", "execute_tool", "report_outcome"]
        first = await best(client)
        assert (first["name"], first["price_from"]) == ("refuses", "free")

        refused = await client.call_tool("execute_tool", {"name": "refuses"})
        assert refused.is_error
        assert json.loads(refused.content[0].text)["code"] == -32050  # type: ignore[union-attr]
        assert len(json.loads(refused.content[1].text)["try_next"]["tools"]) == 2  # type: ignore[union-attr]
        assert (await best(client))["success"] < first["success"]


async def test_a_client_is_listed_the_meta_tools_and_what_is_always_available(lazy: Lazy, era: str) -> None:
    server = lazy(shop(), always_available=("echo",))

    async with Client(server, mode=era, cache=None) as client:
        assert await names(client) == [*META_TOOLS, "echo"]
        assert "count" in await found(client, "count up")
        described = await client.call_tool("describe_tools", {"names": ["count"]})
        assert json.loads(text(described))["tools"][0]["inputSchema"]["required"] == ["to"]
        invoked = await client.call_tool("invoke_tool", {"name": "shelf_7", "arguments": {"item": "nails"}})
        assert text(invoked) == "nails on 7"


async def test_the_server_keeps_its_name_version_and_instructions(lazy: Lazy, era: str) -> None:
    async with Client(lazy(shop()), mode=era, cache=None) as client:
        assert (client.server_info.name, client.server_info.version) == ("shop", "3.1")
        assert client.instructions == "A shop."


async def test_a_small_server_lists_its_tools_as_without_the_hook(lazy: Lazy, encoder: FakeEncoder, era: str) -> None:
    hooked = lazy(shop(), eager_tools=100)

    async with Client(shop(), mode=era, cache=None) as bare, Client(hooked, mode=era, cache=None) as client:
        ours, theirs = await client.list_tools(), await bare.list_tools()

    assert [plain(tool) for tool in ours.tools] == [plain(tool) for tool in theirs.tools]
    assert encoder.encoded == []


@pytest.mark.parametrize("through", ["its own name", "invoke_tool"])
async def test_a_call_answers_as_it_does_without_the_hook(lazy: Lazy, era: str, through: str) -> None:
    calls: list[tuple[str, dict[str, Any]]] = [
        ("echo", {"text": "hällo 🪝"}),
        ("count", {"to": 3}),
        ("paint", {}),
        ("fails", {"why": "broken"}),
        ("refuses", {}),
    ]

    async def answers(server: MCPServer, *, invoked: bool) -> list[Any]:
        async with Client(server, mode=era, cache=None, elicitation_callback=choose_blue) as client:
            return [await outcome(client, name, arguments, invoked=invoked) for name, arguments in calls]

    bare = await answers(shop(), invoked=False)

    assert await answers(lazy(shop()), invoked=through == "invoke_tool") == bare
    assert "painted blue" in str(bare)


async def outcome(client: Client, name: str, arguments: dict[str, Any], *, invoked: bool) -> Any:
    """The result or the protocol's error, and the progress."""
    seen: list[Any] = []

    async def report(*progress: Any) -> None:
        seen.append(progress)

    if invoked:
        name, arguments = "invoke_tool", {"name": name, "arguments": arguments}
    try:
        return plain(await client.call_tool(name, arguments, progress_callback=report)), seen
    except MCPError as error:
        return error.error.model_dump(), seen


async def test_a_state_that_the_client_carries_belongs_to_the_tool_that_made_it(lazy: Lazy) -> None:
    """The SDK seals it to the call: what `invoke_tool` was given cannot be turned to another tool."""
    async with Client(lazy(shop()), cache=None, elicitation_callback=choose_blue) as client:
        paint = {"name": "paint", "arguments": {}}
        asked = await client.session.call_tool("invoke_tool", paint, allow_input_required=True)
        assert isinstance(asked, types.InputRequiredResult)
        reply = {
            key: types.ElicitResult(action="accept", content={"name": "red"}) for key in asked.input_requests or ()
        }
        with pytest.raises(MCPError):
            await client.session.call_tool(
                "echo", {"text": "x"}, input_responses=reply, request_state=asked.request_state
            )
        done = await client.session.call_tool(
            "invoke_tool", paint, input_responses=reply, request_state=asked.request_state
        )

    assert isinstance(done, types.CallToolResult)
    assert text(done) == "painted red"


async def test_wrong_arguments_of_an_invoked_tool_do_not_reach_the_server(lazy: Lazy, era: str) -> None:
    async with Client(lazy(shop()), mode=era, cache=None) as client:
        wrong = await client.call_tool("invoke_tool", {"name": "count", "arguments": {"to": "many"}})
        assert json.loads(text(wrong))["error"] == "arguments_invalid"
        near = await client.call_tool("invoke_tool", {"name": "cuont"})
        assert json.loads(text(near))["available"] == ["count"]


async def test_a_name_that_is_in_no_list_is_answered_by_the_server_itself(lazy: Lazy, era: str) -> None:
    async with Client(lazy(shop()), mode=era, cache=None) as client:
        assert text(await client.call_tool("nothing", {})) == "Unknown tool: nothing"


async def test_tools_that_come_change_and_go_are_seen_by_the_next_search(lazy: Lazy, era: str) -> None:
    server = lazy(MCPServer("late"))
    add_shelf(server, 1)
    async with Client(server, mode=era, cache=None) as client:
        assert await found(client, "look at shelf") == ["shelf_1"]
        add_shelf(server, 2, "Dust the shelf number")
        assert set(await found(client, "shelf")) == {"shelf_1", "shelf_2"}
        assert text(await client.call_tool("shelf_2", {"item": "dust"})) == "dust on 2"
        server.remove_tool("shelf_1")
        assert await found(client, "look at shelf") == ["shelf_2"]


async def test_a_tool_that_takes_other_arguments_than_before_is_called_with_them(lazy: Lazy, era: str) -> None:
    server = lazy(shop())
    async with Client(server, mode=era, cache=None) as client:
        await found(client, "shelf")
        server.remove_tool("shelf_1")

        @server.tool(name="shelf_1", description="Look at a shelf")
        def shelf(row: int) -> str:
            return f"row {row}"

        assert text(await client.call_tool("invoke_tool", {"name": "shelf_1", "arguments": {"row": 4}})) == "row 4"


async def test_nothing_is_kept_of_a_connection_that_ended(lazy: Lazy) -> None:
    sessions: list[weakref.ref[Any]] = []

    async def witness(ctx: ServerRequestContext[Any, Any], call_next: CallNext) -> HandlerResult:
        sessions.append(weakref.ref(ctx.session))
        return await call_next(ctx)

    server = lazy(shop(middleware=[witness]))
    async with Client(server, mode="legacy", cache=None, client_info=DYNAMIC) as client:
        await names(client)
        await found(client, "shelf")

    def gone() -> bool:
        gc.collect()
        return all(each() is None for each in sessions)

    assert sessions
    await until(gone)


async def test_only_what_is_new_is_embedded(lazy: Lazy, encoder: FakeEncoder) -> None:
    server = lazy(shop(), exposure="static")
    async with Client(server, cache=None) as client:
        await names(client)
        await until(lambda: "shop: A shop." in encoder.encoded)  # the server's profile, after all of its tools
        before = len(encoder.encoded)
        add_shelf(server, 99)
        await names(client)
        await until(lambda: len(encoder.encoded) > before)

    assert all("99" in each for each in encoder.encoded[before:])


@pytest.mark.parametrize(("index", "boards"), [("compressed", 2), ("chroma", 0)])
async def test_no_listing_removes_the_vectors_of_another_from_an_index(parts: Parts, index: str, boards: int) -> None:
    named: list[str] = []

    def made(board: str) -> None:
        named.append(board)

    server = shop()
    pegboard.lazy(server, parts=replace(parts, index=made), index=index, eager_tokens=0, eager_tools=0)
    async with Client(server) as client:
        await found(client, "echo a text")
        add_shelf(server, 99)
        assert "shelf_99" in await found(client, "look at shelf number 99")

    assert len({*named}) == len(named) == boards


async def test_nothing_is_embedded_before_a_client_asks(lazy: Lazy, encoder: FakeEncoder) -> None:
    async with Client(lazy(shop()), cache=None):
        pass

    assert encoder.encoded == []


class Guard:
    """A middleware that shows and allows one tool to nobody."""

    def __init__(self, tool: str) -> None:
        self.tool = tool
        self.calls: list[str] = []

    async def __call__(self, ctx: ServerRequestContext[Any, Any], call_next: CallNext) -> HandlerResult:
        if ctx.method == "tools/call":
            self.calls.append((ctx.params or {})["name"])
            if self.calls[-1] == self.tool:
                raise MCPError(-32001, "forbidden")
        result = await call_next(ctx)
        if ctx.method == "tools/list" and isinstance(result, dict):
            return result | {"tools": [tool for tool in result["tools"] if tool["name"] != self.tool]}
        return result


async def test_what_the_servers_middleware_hides_is_neither_found_nor_called(lazy: Lazy, era: str) -> None:
    guard = Guard("shelf_3")
    server = lazy(shop(middleware=[guard]))

    async with Client(server, mode=era, cache=None) as client:
        assert "shelf_3" not in await found(client, "look at shelf number 3", limit=20)
        call = {"name": "shelf_3", "arguments": {"item": "x"}}
        assert json.loads(text(await client.call_tool("invoke_tool", call)))["error"] == "tool_not_available"
        with pytest.raises(MCPError, match="forbidden"):
            await client.call_tool("shelf_3", {"item": "x"})
        await client.call_tool("invoke_tool", {"name": "shelf_4", "arguments": {"item": "x"}})

    assert guard.calls == ["shelf_3", "shelf_4"]


async def test_what_the_rules_forbid_is_refused_before_the_server_is_asked(lazy: Lazy, era: str) -> None:
    server = lazy(shop(), rules=[{"tools": "echo", "scope": "talk"}])

    async with Client(server, mode=era, cache=None) as client:
        for call in ("echo", {"text": "x"}), ("invoke_tool", {"name": "echo", "arguments": {"text": "x"}}):
            assert json.loads(text(await client.call_tool(*call)))["error"] == "tool_not_available"


async def test_a_tool_that_asks_for_input_has_not_answered_yet(lazy: Lazy) -> None:
    server = lazy(shop(), rules=[{"tools": "echo", "requires": ["has_prior_tool_output:paint"]}])

    async with Client(server, cache=None, elicitation_callback=choose_blue) as client:
        await client.session.call_tool("paint", {}, allow_input_required=True)
        assert json.loads(text(await client.call_tool("echo", {"text": "x"})))["error"] == "tool_not_available"
        await client.call_tool("paint", {})
        assert text(await client.call_tool("echo", {"text": "x"})) == "x"


class Heard:
    """What a client was told of its list."""

    def __init__(self) -> None:
        self.times = 0

    async def __call__(self, message: object) -> None:
        self.times += isinstance(message, types.ToolListChangedNotification)


async def test_what_one_session_finds_joins_its_own_list_only(lazy: Lazy) -> None:
    server, heard, other_heard = lazy(shop(), exposure="dynamic"), Heard(), Heard()
    options: dict[str, Any] = {"mode": "legacy", "cache": None, "client_info": DYNAMIC}

    async with (
        Client(server, message_handler=heard, **options) as client,
        Client(server, message_handler=other_heard, **options) as other,
    ):
        assert await names(client) == await names(other) == META_TOOLS
        hits = await found(client, "count up", limit=2)
        await until(lambda: heard.times == 1)
        assert set(await names(client)) == {*META_TOOLS, *hits}
        assert await names(other) == META_TOOLS

    assert other_heard.times == 0


async def test_a_session_that_searches_is_told_when_the_servers_tools_are_others(lazy: Lazy) -> None:
    server, heard = lazy(shop(), exposure="static"), Heard()

    async with Client(server, mode="legacy", cache=None, message_handler=heard) as client:
        await names(client)
        await found(client, "shelf")
        assert heard.times == 0
        add_shelf(server, 50)
        await found(client, "shelf")
        await until(lambda: heard.times == 1)


@pytest.mark.parametrize(
    ("options", "client_info", "announced"),
    [
        ({"exposure": "dynamic"}, DYNAMIC, True),
        ({"exposure": "dynamic"}, None, False),
        ({}, DYNAMIC, False),
    ],
    ids=["a client that lists again", "a client of which nothing is known", "a static list"],
)
async def test_a_changing_list_is_announced_where_searches_change_it(
    lazy: Lazy, options: dict[str, Any], client_info: types.Implementation | None, announced: bool
) -> None:
    server = lazy(shop(), **options)

    async with Client(server, mode="legacy", cache=None, client_info=client_info) as client:
        assert client.server_capabilities.tools is not None
        assert client.server_capabilities.tools.list_changed is announced


def paged(tools: Sequence[types.Tool], size: int) -> Server[Any]:
    """A low-level server that lists in pages and answers with what it was called."""

    async def list_tools(_ctx: Any, params: types.PaginatedRequestParams | None) -> types.ListToolsResult:
        start = int(params.cursor) if params and params.cursor else 0
        following = str(start + size) if start + size < len(tools) else None
        return types.ListToolsResult(tools=list(tools[start : start + size]), next_cursor=following)

    async def call_tool(_ctx: Any, params: types.CallToolRequestParams) -> types.CallToolResult:
        return types.CallToolResult(content=[types.TextContent(text=f"{params.name} {params.arguments}")])

    return Server("low", on_list_tools=list_tools, on_call_tool=call_tool)


def bare_tool(name: str) -> types.Tool:
    return types.Tool(name=name, description=f"Do {name}", input_schema={"type": "object"})


async def test_a_low_level_server_is_read_page_by_page(lazy: Lazy, era: str) -> None:
    server = lazy(paged([bare_tool(f"tool_{n}") for n in range(25)], 10))

    async with Client(server, mode=era, cache=None) as client:
        assert await names(client) == META_TOOLS
        assert await found(client, "tool_24", limit=1) == ["tool_24"]
        assert text(await client.call_tool("tool_24")) == "tool_24 None"
        assert text(await client.call_tool("invoke_tool", {"name": "tool_24"})) == "tool_24 {}"


async def test_a_tool_of_the_servers_with_one_of_our_names_is_renamed(lazy: Lazy, era: str) -> None:
    server = lazy(paged([bare_tool("search_tools"), bare_tool("other")], 10))

    async with Client(server, mode=era, cache=None) as client:
        renamed = next(name for name in await found(client, "search tools") if name != "other")
        assert renamed != "search_tools"
        assert text(await client.call_tool(renamed, {})).startswith("search_tools")


async def test_a_listing_that_cannot_be_read_goes_out_as_it_is(lazy: Lazy, caplog: pytest.LogCaptureFixture) -> None:
    nameless = bare_tool("")
    async with Client(lazy(paged([nameless], 10)), cache=None) as client:
        assert await names(client) == [""]

    assert "are listed unchanged" in caplog.text


async def test_other_requests_are_the_servers_own(lazy: Lazy, era: str) -> None:
    server = shop()

    @server.resource("shop://hours")
    def hours() -> str:
        return "9 to 5"

    async with Client(lazy(server), mode=era, cache=None) as client:
        assert "9 to 5" in str(await client.read_resource("shop://hours"))


@pytest.mark.parametrize(
    ("server", "options", "message"),
    [
        (object(), {}, "Found no low-level MCP server in a builtins.object"),
        (MCPServer("x"), {"exposur": "static"}, "no option 'exposur'"),
        (MCPServer("x"), {"servers": {}}, "no option 'servers'"),
        (MCPServer("x"), {"exposure": "some"}, "exposure"),
        (MCPServer("x"), {"profile": "some"}, "some"),
        (MCPServer("x"), {"rules": [{"tools": "*", "requires": ["nonsense"]}]}, "nonsense"),
        (pegboard.lazy(MCPServer("x")), {}, "'x' is already lazy"),
    ],
)
def test_what_cannot_be_hooked_is_refused_at_once(server: Any, options: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        pegboard.lazy(server, **options)


def test_the_hook_returns_the_server() -> None:
    server = MCPServer("x")

    assert pegboard.lazy(server) is server


@asynccontextmanager
async def on_stdio(python: Path, program: Path, cache: Path, era: str, **options: Any) -> AsyncIterator[Client]:
    environment = {"PYTHONPATH": str(ROOT / "src"), "PEGBOARD_CACHE_DIR": str(cache), "PATH": os.environ["PATH"]}
    parameters = StdioServerParameters(command=str(python), args=[str(program)], env=environment)
    async with Client(stdio_client(parameters), mode=era, cache=None, **options) as client:
        yield client


async def test_the_example_on_stdio(tmp_path: Path, era: str) -> None:
    async with on_stdio(Path(sys.executable), EXAMPLE, tmp_path, era) as client:
        assert await names(client) == [*META_TOOLS, "list_orders"]
        assert await found(client, "delete a coupon", limit=1) == ["delete_coupon"]
        invoked = await client.call_tool("invoke_tool", {"name": "find_order", "arguments": {"name": "7"}})
        assert text(invoked) == "order 7"


async def test_the_example_over_http_keeps_sessions_apart(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, era: str
) -> None:
    monkeypatch.setenv("PEGBOARD_CACHE_DIR", str(tmp_path))
    monkeypatch.setenv("PEGBOARD_EXPOSURE", "dynamic")
    options: dict[str, Any] = {"mode": era, "cache": None, "client_info": DYNAMIC}
    with listening(str(EXAMPLE)) as url:
        async with Client(f"{url}/mcp", **options) as client, Client(f"{url}/mcp", **options) as other:
            listed = [*META_TOOLS, "list_orders"]
            assert await names(client) == await names(other) == listed
            hits = await found(client, "delete a coupon", limit=1)
            assert hits == ["delete_coupon"]
            assert sorted(await names(client)) == sorted([*listed, *hits] if era == "legacy" else listed)
            assert await names(other) == listed
            assert text(await other.call_tool("delete_coupon", {"name": "A"})) == "coupon A deleted"


@asynccontextmanager
async def fastmcp(cache: Path, era: str, **options: Any) -> AsyncIterator[Client]:
    if not (FASTMCP / "pegboard").exists():
        if os.environ.get("CI"):
            pytest.fail("CI installs FastMCP with scripts/install_clients.py")
        pytest.skip("install FastMCP with: python scripts/install_clients.py")
    async with on_stdio(FASTMCP / "python", HOOKED_FASTMCP, cache, era, **options) as client:
        yield client


async def test_a_fastmcp_server_has_lazy_tools(tmp_path: Path, era: str) -> None:
    async with fastmcp(tmp_path, era) as client:
        assert (client.server_info.name, client.instructions) == ("shop", "A shop.")
        assert await names(client) == META_TOOLS
        assert "shelf_7" in await found(client, "look at shelf number 7")
        invoked = await client.call_tool("invoke_tool", {"name": "shelf_7", "arguments": {"item": "nails"}})
        assert invoked.structured_content == {"shelf": 7, "item": "nails"}


@pytest.mark.requirement("022.progressive-discovery")
async def test_a_fastmcp_server_has_groups_and_filters(tmp_path: Path, era: str) -> None:
    async with fastmcp(tmp_path, era, extensions=[advertise(EXTENSION, {})]) as client:

        async def asked(method: str, **params: Any) -> dict[str, Any]:
            request: Any = ExtensionRequest(method=method, params=params)
            return await client.session.send_request(request, TypeAdapter(dict[str, Any]))  # type: ignore[type-var]

        [group] = (await asked("groups/list"))["groups"]
        assert (group["name"], group["tools"]) == ("shop", 23)
        tools = (await asked("tools/list", filter={"namePatterns": ["shelf_1?"]}))["tools"]
        assert [tool["name"] for tool in tools] == [f"shelf_{number}" for number in range(10, 20)]
        assert all(tool["_meta"][DIGEST].startswith("sha256:") for tool in tools)
        assert await names(client) == META_TOOLS


async def test_progress_and_questions_of_a_fastmcp_tool_reach_the_client(tmp_path: Path) -> None:
    async def choose(_context: Any, _params: types.ElicitRequestParams) -> types.ElicitResult:
        return types.ElicitResult(action="accept", content={"value": "blue"})

    async with fastmcp(tmp_path, "legacy", elicitation_callback=choose) as client:
        _, seen = await outcome(client, "count", {"to": 3}, invoked=True)
        assert [message for _, _, message in seen] == ["step 1", "step 2", "step 3"]
        assert text(await client.call_tool("invoke_tool", {"name": "colour"})) == "accept: blue"


async def test_a_fastmcp_tool_that_one_session_was_shown_is_found_by_it(tmp_path: Path) -> None:
    async with fastmcp(tmp_path, "legacy") as client:
        assert "vault" not in await found(client, "take gold out of the vault")
        await client.call_tool("open_vault", {})
        assert "vault" in await found(client, "take gold out of the vault")
        assert text(await client.call_tool("vault", {})) == "gold"
