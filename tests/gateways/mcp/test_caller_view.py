"""What a client is listed: the choice as a table of cases, and the caps of clients as a property of every listing."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pegboard import Catalog, Settings
from pegboard.catalog.ingest.mcp import tool_from_mcp
from pegboard.gateways.mcp.gateway import session_changes
from pegboard.gateways.mcp.gateway.caller import Caller
from pegboard.gateways.mcp.gateway.caller_view import choose, listing, room, tokens_listed
from pegboard.gateways.mcp.gateway.catalog_view import is_small, wire_names
from pegboard.gateways.mcp.gateway.clients import ClientKind, client_kind, known_clients
from pegboard.gateways.mcp.gateway.gateway import Gateway
from pegboard.gateways.mcp.gateway.meta_definitions import ROUTING, SEARCHING
from pegboard.model import Server, ServerName, Session
from pegboard.routing_board import RoutingBoard
from pegboard.settings import ClientSettings, Exposure
from pegboard.stores import MemoryEvents
from pegboard.testing import FakeClock, FakeEncoder, fake_tool

LISTENS = ClientKind(name="listens", list_changed=True)
DEAF = ClientKind(name="deaf")
SEARCHES = ClientKind(name="searches", list_changed=True, native_search=True)
DEMOTED = Session(id="x", notices=session_changes.MOST_NOTICES)


def caller(kind: ClientKind = DEAF, **fields: Any) -> Caller:
    return Caller(**({"session": "x", "kind": kind} | fields))


@pytest.mark.requirement("002.compatibility")
@pytest.mark.parametrize(
    ("who", "small", "expected"),
    [
        (caller(), True, "eager"),
        (caller(LISTENS), True, "eager"),
        (caller(LISTENS, modern=True), True, "eager"),
        (caller(SEARCHES), True, "eager"),
        (caller(), False, "static"),
        (caller(LISTENS), False, "static"),
        (caller(LISTENS, session=None), False, "static"),
        (caller(LISTENS, modern=True), False, "static"),
        (caller(LISTENS, modern=True, session=None), False, "static"),
        (caller(SEARCHES), False, "native"),
        (caller(SEARCHES, modern=True), False, "native"),
    ],
)
def test_without_a_wish_it_goes_by_size_era_and_client(who: Caller, small: bool, expected: Exposure) -> None:
    assert choose(who, Session(), Settings(), small=small, tools=50) == expected


@pytest.mark.requirement("022.never-dearer")
@pytest.mark.parametrize("small", [True, False])
@pytest.mark.parametrize(("kind", "expected"), [(LISTENS, "dynamic"), (SEARCHES, "dynamic"), (DEAF, "static")])
def test_lists_grow_where_the_configuration_asks_for_it_and_the_client_lists_again(
    kind: ClientKind, expected: Exposure, small: bool
) -> None:
    assert choose(caller(kind), Session(), Settings(exposure="dynamic"), small=small, tools=50) == expected
    assert choose(caller(kind), Session(), Settings(), small=False, tools=50) != "dynamic"


@pytest.mark.requirement("M1")
@pytest.mark.parametrize("kind", [DEAF, LISTENS, ClientKind(exposure="dynamic")])
@pytest.mark.parametrize("wish", [None, "dynamic"])
@pytest.mark.parametrize("mode", ["auto", "dynamic"])
@pytest.mark.parametrize("session", [None, "x"])
def test_a_modern_client_is_never_listed_what_depends_on_a_session(
    kind: ClientKind, wish: Exposure | None, mode: Any, session: str | None
) -> None:
    who = caller(kind, modern=True, exposure=wish, session=session)

    assert choose(who, Session(), Settings(exposure=mode), small=False, tools=50) == "static"


@pytest.mark.parametrize(
    "name", ["Visual Studio Code", "opencode", "Windsurf", "gemini-cli-mcp-client", "Cline", "Kilo-Code"]
)
def test_the_table_knows_who_lists_again_when_told(name: str) -> None:
    asked = Settings(exposure="dynamic")
    assert choose(caller(client_kind(name)), Session(), asked, small=False, tools=50) == "dynamic"


@pytest.mark.parametrize(
    "name", ["claude-ai", "codex-mcp-client", "ChatGPT", "goose", "Zed", "cursor-vscode", "", "curl"]
)
def test_who_is_not_known_to_list_again_is_listed_what_never_changes(name: str) -> None:
    asked = Settings(exposure="dynamic")
    assert choose(caller(client_kind(name)), Session(), asked, small=False, tools=50) == "static"


@pytest.mark.requirement("B1")
@pytest.mark.parametrize("modern", [False, True])
def test_claude_code_is_not_listed_everything_unless_its_own_search_is_known_to_be_on(modern: bool) -> None:
    who = caller(client_kind("claude-code"), modern=modern)
    known = caller(
        client_kind("claude-code", overrides={"claude-code": ClientSettings(native_search=True)}), modern=modern
    )

    assert choose(who, Session(), Settings(), small=False, tools=852) == "static"
    assert choose(known, Session(), Settings(), small=False, tools=852) == "native"


@pytest.mark.requirement("B1")
@pytest.mark.parametrize("name", [*known_clients(), "unknown"])
@pytest.mark.parametrize("modern", [False, True])
def test_no_client_is_listed_a_large_board_by_default(name: str, modern: bool) -> None:
    kind = known_clients()[name].kind if name in known_clients() else ClientKind()

    for session in (None, "x"):
        who = caller(kind, modern=modern, session=session)
        assert choose(who, Session(), Settings(), small=False, tools=852) == "static"


@pytest.mark.requirement("B1")
@pytest.mark.parametrize("exposure", ["static", "dynamic", "route", "native", "eager"])
def test_what_is_always_there_is_kept_out_of_the_clients_own_search(exposure: Exposure) -> None:
    said = {"anthropic/alwaysLoad": False, "their/own": 1}
    refuses = tool_from_mcp("fake", {"name": "refuses", "inputSchema": {"type": "object"}, "_meta": said})
    tools = [fake_tool("pinned"), fake_tool("found"), fake_tool("other"), refuses]
    board = Catalog.build([(Server(name=ServerName("fake")), tools)])
    ids = {tool.name: tool.id for tool in board.tools}

    def listed(key: str | None) -> dict[str, Any]:
        definitions = listing(
            board,
            wire_names(board.position),
            exposure=exposure,
            pool="",
            allowed=frozenset(board.position),
            always=[ids["pinned"], ids["refuses"]],
            enabled=[ids["found"]],
            always_load=key,
        )
        return {each["name"]: each.get("_meta") for each in definitions}

    shown = listed("anthropic/alwaysLoad")
    at_once = {name for name, meta in shown.items() if (meta or {}).get("anthropic/alwaysLoad")}
    ours = {"route": set(ROUTING), "static": set(SEARCHING), "dynamic": set(SEARCHING)}.get(exposure, set())
    assert at_once == ours | {"pinned"}
    assert shown["refuses"] == said
    assert not any((meta or {}).get("anthropic/alwaysLoad") for meta in listed(None).values())


@pytest.mark.parametrize(
    ("connection", "of_client", "of_all", "expected"),
    [
        ("eager", "static", "native", "eager"),
        (None, "static", "native", "static"),
        (None, None, "native", "native"),
        ("dynamic", "static", "static", "dynamic"),
        ("route", "static", "static", "route"),
        (None, "route", "native", "route"),
        (None, None, "route", "route"),
        (None, None, "auto", "static"),
    ],
)
def test_the_connections_wish_comes_before_that_of_its_client_and_that_of_all(
    connection: Exposure | None, of_client: Exposure | None, of_all: Any, expected: Exposure
) -> None:
    who = caller(ClientKind(exposure=of_client), exposure=connection)

    assert choose(who, Session(), Settings(exposure=of_all), small=False, tools=50) == expected


@pytest.mark.parametrize("who", [caller(LISTENS), caller(exposure="dynamic"), caller(ClientKind(exposure="dynamic"))])
def test_a_session_that_does_not_list_again_is_demoted_whatever_was_wished(who: Caller) -> None:
    assert choose(who, DEMOTED, Settings(exposure="dynamic"), small=False, tools=50) == "static"


@pytest.mark.parametrize("wish", ["eager", "native"])
def test_a_board_beyond_the_clients_cap_is_never_listed_whole(wish: Exposure) -> None:
    capped = ClientKind(list_changed=True, most_tools=40)

    for who in (caller(capped, exposure=wish), caller(capped)):
        config = Settings(exposure="auto" if who.exposure else wish)
        assert choose(who, Session(), config, small=False, tools=40) == wish
        assert choose(who, Session(), config, small=False, tools=41) == "static"
    deaf = caller(ClientKind(most_tools=40), exposure=wish)
    assert choose(deaf, Session(), Settings(), small=False, tools=41) == "static"


@pytest.mark.parametrize(
    ("most", "pinned", "expected"), [(None, 100, 40), (128, 0, 40), (40, 0, 36), (40, 10, 26), (40, 36, 0), (40, 99, 0)]
)
def test_what_searches_may_add_is_what_the_client_has_room_for(most: int | None, pinned: int, expected: int) -> None:
    assert room(caller(ClientKind(most_tools=most)), Settings(), pinned) == expected


def test_a_board_is_small_by_tools_or_by_tokens() -> None:
    def board(tools: int, words: int = 1) -> Catalog:
        return catalog(tools, "word " * words)

    assert is_small(board(9, 5_000), Settings())
    assert is_small(board(10), Settings())
    assert not is_small(board(10, 5_000), Settings())
    assert not is_small(board(9, 5_000), Settings(eager_tools=0, eager_tokens=0))


@pytest.mark.requirement("B1")
@pytest.mark.parametrize("wish", ["eager", "native"])
def test_a_board_beyond_the_list_budget_is_listed_whole_only_to_who_is_known_to_defer_it(wish: Exposure) -> None:
    def chosen(kind: ClientKind, tokens: int, **settings: Any) -> Exposure:
        who = caller(kind, exposure=wish)
        return choose(who, Session(), Settings(**settings), small=True, tools=50, tokens=tokens)

    assert chosen(LISTENS, 6_000) == wish
    assert chosen(LISTENS, 6_001) == "static"
    assert chosen(DEAF, 6_001) == "static"
    assert chosen(DEAF, 6_001, list_budget=0) == wish
    assert chosen(SEARCHES, 6_001) == ("native" if wish == "native" else "static")
    assert choose(caller(), Session(), Settings(), small=True, tools=9, tokens=6_001) == "static"


def catalog(size: int, description: str = "") -> Catalog:
    tools = [fake_tool(f"tool{number}", description) for number in range(size)]
    return Catalog.build([(Server(name=ServerName("fake")), tools)])


class NoServers:
    """A fleet that has settled, and never changes."""

    def status(self) -> list[Any]:
        return []

    async def settled(self, timeout: float, *, some: bool = False) -> bool:
        return True


BOARDS = {size: catalog(size) for size in (0, 5, 39, 60, 130, 200)}


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_no_listing_ever_exceeds_the_cap_of_its_client(
    data: st.DataObject, board_of: Callable[..., RoutingBoard], encoder: FakeEncoder
) -> None:
    most = data.draw(st.sampled_from([40, 64, 100, 128]))
    tools = BOARDS[data.draw(st.sampled_from(sorted(BOARDS)))]
    names = [tool.name for tool in tools.tools]
    pinned = names[: data.draw(st.integers(0, len(names)))]
    config = Settings(
        exposure=data.draw(st.sampled_from(["auto", "eager", "static", "dynamic", "native", "route"])),
        session_tools=data.draw(st.integers(1, 300)),
        eager_tools=data.draw(st.sampled_from([0, 10, 1_000])),
    )
    kind = ClientKind(list_changed=data.draw(st.booleans()), native_search=data.draw(st.booleans()), most_tools=most)
    who = Caller(
        session=data.draw(st.sampled_from([None, "x"])),
        kind=kind,
        modern=data.draw(st.booleans()),
        exposure=data.draw(st.sampled_from([None, "eager", "static", "dynamic", "native", "route"])),
    )
    enabled = data.draw(st.lists(st.sampled_from(tools.tools), max_size=250)) if names else []

    async def listed() -> list[str]:
        clock = FakeClock(1.0)
        board = board_of(tools, always_available=tuple(pinned), patient=False)
        gateway = Gateway(config, board, NoServers(), events=MemoryEvents(), clock=clock)  # type: ignore[arg-type]
        await gateway.book.update("x", session_changes.enable([tool.id for tool in enabled], cap=300))
        found = [tool["name"] for tool in await gateway.list_tools(who)]
        gateway.close()
        return found

    found = asyncio.run(listed())

    assert len(found) <= most
    assert len(set(found)) == len(found)
    if len(found) < len(names):
        assert any(set(each) <= set(found) for each in (SEARCHING, ROUTING)), "what is not listed can be found"


@pytest.mark.requirement("B1")
@pytest.mark.parametrize("exposure", ["auto", "eager", "static", "dynamic", "native", "route"])
@pytest.mark.parametrize("kind", [DEAF, LISTENS])
async def test_no_listing_exceeds_the_list_budget_and_what_is_left_out_is_logged_once(
    exposure: Any, kind: ClientKind, board_of: Callable[..., RoutingBoard], caplog: pytest.LogCaptureFixture
) -> None:
    tools = catalog(60, "word " * 150)
    names = [tool.name for tool in tools.tools]
    board = board_of(tools, always_available=tuple(names[:40]), patient=False)
    config = Settings(exposure=exposure, list_budget=3_000)
    gateway = Gateway(config, board, NoServers(), events=MemoryEvents(), clock=FakeClock(1.0))  # type: ignore[arg-type]
    found = [tool.id for tool in tools.tools[45:]]
    await gateway.book.update("x", session_changes.enable(found, cap=300))

    await gateway.list_tools(caller(kind))
    listed = await gateway.list_tools(caller(kind))
    gateway.close()

    shown = [each["name"] for each in listed]
    assert 2_500 < tokens_listed(tools, listed) <= 3_000
    assert "tool0" in shown, "what comes first is kept"
    assert "tool39" not in shown
    assert [text for text in caplog.messages if "list_budget" in text] == list(
        dict.fromkeys(text for text in caplog.messages if "list_budget" in text)
    )
    assert any("list_budget is 3000 tokens" in text for text in caplog.messages)
