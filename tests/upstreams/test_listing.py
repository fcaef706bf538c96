"""Which of the tools that a server lists are offered: those that a call can succeed with."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import anyio
import pytest

from pegboard.settings.server_spec import ServerSpec
from pegboard.upstreams import Fleet, server_lists, subscriptions
from pegboard.upstreams.error_text import Redactor
from pegboard.upstreams.limits import DEFAULT_LIMITS
from pegboard.upstreams.server_lists import MOST_PAGES

MakeFleet = Callable[..., Fleet]

LISTED = str(Path(__file__).parents[1] / "servers" / "listed.py")


def tool(name: str, *, task: str | None = None, **properties: Any) -> dict[str, Any]:
    definition = {"name": name, "inputSchema": {"type": "object", "properties": properties}}
    return definition | ({"execution": {"taskSupport": task}} if task else {})


TASKS = [
    tool("plain"),
    tool("forbidden", task="forbidden"),
    tool("may", task="optional"),
    tool("must", task="required"),
]
HEADERS = [
    tool("valid", region={"type": "string", "x-mcp-header": "Region"}),
    tool("spaced", region={"type": "string", "x-mcp-header": "My Region"}),
    tool("empty", region={"type": "string", "x-mcp-header": ""}),
    tool("number", region={"type": "string", "x-mcp-header": 1}),
    tool("object", region={"type": "object", "x-mcp-header": "Region"}),
    tool("twice", a={"type": "string", "x-mcp-header": "Region"}, b={"type": "string", "x-mcp-header": "region"}),
    tool("deep", a={"type": "array", "items": {"type": "string", "x-mcp-header": "Region"}}),
    tool("plain"),
]


async def offered(fleet_of: MakeFleet, folder: Path, tools: list[dict[str, Any]], *, modern: bool = False) -> list[str]:
    """The names that a fleet offers of these tools."""
    file = folder / "tools.json"
    file.write_text(json.dumps({"title": "", "instructions": "", "tools": tools}))
    era = {"LISTED_MODERN": "1"} if modern else {}
    async with fleet_of(ServerSpec(name="s", command=sys.executable, args=(LISTED, str(file)), env=era)) as fleet:
        await fleet.settled(60)
        return [each.name for each in fleet.catalog().tools]


@pytest.mark.parametrize("modern", [False, True])
async def test_a_server_that_has_prompts_or_resources_alone_is_ready_without_tools(
    fleet_of: MakeFleet, tmp_path: Path, modern: bool
) -> None:
    file, era = tmp_path / "none.json", {"LISTED_MODERN": "1"} if modern else {}
    file.write_text(json.dumps({"title": "", "instructions": "", "tools": None}))
    spec = ServerSpec(name="s", command=sys.executable, args=(LISTED, str(file)), env=era)

    async with fleet_of(spec) as fleet:
        await fleet.settled(60)
        [status] = fleet.status()

    assert (status.state, status.reason, status.tools) == ("ready", "", 0)


@pytest.mark.requirement("B8")
@pytest.mark.parametrize("modern", [False, True])
async def test_a_tool_that_has_to_be_called_as_a_task_is_not_offered(
    fleet_of: MakeFleet, tmp_path: Path, modern: bool, caplog: pytest.LogCaptureFixture
) -> None:
    assert await offered(fleet_of, tmp_path, TASKS, modern=modern) == ["plain", "forbidden", "may"]
    assert "s/must is left out: it can only be called as a task" in caplog.text


@pytest.mark.requirement("B12")
async def test_a_tool_whose_header_marks_are_invalid_is_not_offered(
    fleet_of: MakeFleet, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    assert await offered(fleet_of, tmp_path, HEADERS, modern=True) == ["valid", "plain"]
    assert "s/spaced is left out: its x-mcp-header is invalid" in caplog.text


@pytest.mark.requirement("B12")
async def test_in_the_handshake_era_header_marks_mean_nothing(fleet_of: MakeFleet, tmp_path: Path) -> None:
    assert await offered(fleet_of, tmp_path, HEADERS) == [each["name"] for each in HEADERS]


@pytest.mark.requirement("D7")
async def test_what_catalogs_need_of_a_tool_is_computed_before_they_are_built(
    fleet_of: MakeFleet, tmp_path: Path
) -> None:
    """Of five thousand tools it takes half a second, for which no other request would be answered."""
    file = tmp_path / "tools.json"
    file.write_text(json.dumps({"title": "", "instructions": "", "tools": [tool("plain"), tool("other")]}))
    async with fleet_of(ServerSpec(name="s", command=sys.executable, args=(LISTED, str(file)))) as fleet:
        await fleet.settled(60)
        listed = fleet.catalog().tools

    assert len(listed) == 2
    assert all(each.fingerprint and each.counted for each in listed)


async def test_a_tool_whose_name_no_store_can_keep_is_not_offered(
    fleet_of: MakeFleet, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    assert await offered(fleet_of, tmp_path, [tool("plain"), tool("a\0b"), tool("ä" * 501)]) == ["plain"]
    assert "is left out: its name has NUL" in caplog.text
    assert "is left out: its name has 1,002 bytes" in caplog.text


async def test_what_a_server_may_have_changed_while_it_could_not_say_so_counts_as_changed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Each time the stream of its announcements opens again, but not the first time."""
    monkeypatch.setattr(subscriptions, "FIRST_PAUSE", 0.0)
    heard: list[str] = []
    opened = 0
    done = asyncio.Event()

    async def hear(message: Any) -> None:
        heard.append(message.method)

    @asynccontextmanager
    async def listen(**_wanted: bool) -> AsyncIterator[AsyncIterator[None]]:
        nonlocal opened
        opened += 1
        if opened == 3:
            done.set()
            await asyncio.Event().wait()
        yield nothing()

    async def nothing() -> AsyncIterator[None]:
        for each in ():
            yield each

    announced = SimpleNamespace(list_changed=True)
    capabilities = SimpleNamespace(tools=None, prompts=announced, resources=None)
    client: Any = SimpleNamespace(
        server_capabilities=capabilities, session=SimpleNamespace(discover_result=True), listen=listen
    )
    spec = ServerSpec(name="s", command="s")
    changes = subscriptions.ListChanges("s", Redactor(spec, {}), DEFAULT_LIMITS, hear)
    monkeypatch.setattr(changes, "_changed", lambda: None)
    async with anyio.create_task_group() as tasks:
        with changes.followed(tasks, client, 1.0, hear):
            await asyncio.wait_for(done.wait(), 60)
        tasks.cancel_scope.cancel()
    assert heard == ["notifications/prompts/list_changed"]


async def test_of_a_list_without_end_the_first_pages_are_read_and_the_log_says_so_once(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    asked = 0

    async def page(*_: object) -> dict[str, Any]:
        nonlocal asked
        asked += 1
        return {"tools": [tool(f"tool {asked}")], "nextCursor": str(asked)}

    server_lists.warn_of_pages.cache_clear()
    monkeypatch.setattr(server_lists, "untouched", page)
    nothing = {"server_info": None, "instructions": None, "server_capabilities": None, "protocol_version": "2025-11-25"}
    for _ in range(2):
        listing = await server_lists.read_listing("endless", cast(Any, SimpleNamespace(**nothing)), 60, DEFAULT_LIMITS)

    assert (len(listing.pages), asked) == (MOST_PAGES, 2 * MOST_PAGES)
    [said] = caplog.records
    assert said.getMessage().startswith("Server endless lists tools on more than 1,000 pages; the rest is left out.")
