"""Servers on stdio that ask: with `per_client`, each client has a process of its own, and is asked what is its own."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import Any

import mcp_types as types
import pytest
from mcp import Client

from pegboard.gateways.mcp.gateway.host import Host
from pegboard.settings.server_spec import ServerSpec
from pegboard.upstreams import per_client
from processes import descendants, listening, until

OpenDoor = Callable[..., AbstractAsyncContextManager[tuple[str, Host]]]

SERVERS = Path(__file__).parents[2] / "servers"
TALKATIVE = str(SERVERS / "talkative.py")

pytestmark = pytest.mark.filterwarnings("ignore::mcp.MCPDeprecationWarning")


def talkative(**fields: Any) -> ServerSpec:
    return ServerSpec(name="talkative", command=sys.executable, args=(TALKATIVE, "legacy"), **fields)


def processes() -> int:
    return len(descendants(os.getpid()))


class Person:
    """A client that answers with its name once everybody has been asked."""

    def __init__(self, name: str, asked: list[str], of: int) -> None:
        self.name, self._asked, self._of = name, asked, of

    @asynccontextmanager
    async def at(self, url: str, mode: str = "legacy") -> AsyncIterator[Client]:
        async with Client(url, mode=mode, cache=None, elicitation_callback=self.elicited) as client:
            yield client

    async def elicited(self, _ctx: Any, _params: types.ElicitRequestParams) -> types.ElicitResult:
        self._asked.append(self.name)
        await until(lambda: len(self._asked) >= self._of)
        return types.ElicitResult(action="accept", content={"word": self.name})


async def ask(client: Client, tag: str) -> types.CallToolResult:
    return await client.call_tool("ask_legacy", {"what": "elicit", "tag": tag})


def said(result: types.CallToolResult) -> str:
    return str(result.content[0].text)  # type: ignore[union-attr]


@pytest.mark.requirement("M21")
async def test_clients_at_once_are_each_asked_what_is_their_own_and_their_processes_leave_with_them(
    open_door: OpenDoor,
) -> None:
    asked: list[str] = []
    names = ("ann", "bob", "eve")
    async with open_door(talkative(per_client=True)) as (url, _):
        shared = processes()
        people = [Person(name, asked, len(names)).at(url) for name in names]
        async with people[0] as ann, people[1] as bob, people[2] as eve:
            results = await asyncio.gather(
                *(ask(each, name) for each, name in zip((ann, bob, eve), names, strict=True))
            )
            assert processes() > shared
        for name, result in zip(names, results, strict=True):
            assert not result.is_error
            assert said(result).startswith(f"{name}: ")
            assert name in said(result).partition(": ")[2]
        await until(lambda: processes() == shared)


@pytest.mark.requirement("M21")
async def test_on_a_shared_connection_nobody_is_asked_what_may_be_anothers(open_door: OpenDoor) -> None:
    asked: list[str] = []
    async with open_door(talkative()) as (url, _):
        people = [Person(name, asked, 2).at(url) for name in ("ann", "bob")]
        async with people[0] as ann, people[1] as bob:
            tasks = [asyncio.create_task(ask(client, "x")) for client in (ann, bob)]
            await until(lambda: any(task.done() for task in tasks) or len(asked) == 2)
            asked += ["nobody waits any more"] * 2
            results = await asyncio.gather(*tasks, return_exceptions=True)
    refused = [each for each in results if isinstance(each, Exception) or each.is_error]
    assert refused, "who was not asked is told"


async def test_a_client_without_a_name_shares(open_door: OpenDoor) -> None:
    async with open_door(talkative(per_client=True)) as (url, _):
        shared = processes()
        async with Client(url, mode="auto", cache=None) as client:
            for _ in range(3):
                assert not (await client.call_tool("parts_legacy", {})).is_error
            assert processes() == shared


async def test_beyond_a_number_of_clients_the_one_that_was_idle_longest_gives_its_place(
    open_door: OpenDoor, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(per_client, "MOST_CLIENTS", 1)
    async with open_door(talkative(per_client=True)) as (url, host):
        people = [Person(name, [], 0).at(url) for name in ("ann", "bob")]
        async with people[0] as ann, people[1] as bob:
            assert not (await ann.call_tool("parts_legacy", {})).is_error
            one = processes()
            for client in (bob, ann):
                assert not (await client.call_tool("parts_legacy", {})).is_error
                await until(lambda: processes() == one)
        assert host.fleet.status()[0].state == "ready"


async def test_a_connection_that_nobody_uses_ends_and_its_client_gets_another(
    open_door: OpenDoor, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(per_client, "IDLE_SECONDS", 0.0)
    async with open_door(talkative(per_client=True)) as (url, host):
        shared = processes()
        async with Person("ann", [], 0).at(url) as ann:
            for _ in range(2):
                assert not (await ann.call_tool("parts_legacy", {})).is_error
                host.fleet._client_connections.stop_idle()
                await until(lambda: processes() == shared)


@pytest.fixture(scope="module")
def by_session() -> Iterator[str]:
    with listening(str(SERVERS / "by_session.py")) as url:
        yield url


@asynccontextmanager
async def with_roots(url: str, name: str) -> AsyncIterator[Client]:
    async def roots(_ctx: Any) -> types.ListRootsResult:
        return types.ListRootsResult(roots=[types.Root(uri=f"file:///{name}")])  # type: ignore[arg-type]

    async with Client(url, mode="legacy", cache=None, list_roots_callback=roots) as client:
        yield client


async def seen(client: Client) -> dict[str, Any]:
    """What the client's own connection has brought the server."""
    return dict(json.loads(said(await client.call_tool("seen", {}))))


@asynccontextmanager
async def ann_and_bob(open_door: OpenDoor, server: str) -> AsyncIterator[tuple[Client, Client]]:
    spec = ServerSpec(name="by-session", url=f"{server}/mcp", per_client=True)
    async with (
        open_door(spec, exposure="eager") as (url, _),
        with_roots(url, "ann") as ann,
        with_roots(url, "bob") as bob,
    ):
        yield ann, bob


@pytest.mark.requirement("M21")
async def test_a_server_hears_of_the_roots_of_the_client_whose_connection_it_is(
    open_door: OpenDoor, by_session: str
) -> None:
    async with ann_and_bob(open_door, by_session) as (ann, bob):
        assert [(await seen(each))["roots"] for each in (ann, bob)] == [[], []]
        await ann.send_roots_list_changed()
        async with asyncio.timeout(60):
            while not (found := (await seen(ann))["roots"]):  # noqa: ASYNC110 - another process changes it
                await asyncio.sleep(0.01)

        assert found == [["file:///ann"]]
        assert (await seen(bob))["roots"] == []


@pytest.mark.requirement("M17")
async def test_a_clients_own_connection_logs_at_the_level_that_this_client_wants(
    open_door: OpenDoor, by_session: str
) -> None:
    async with ann_and_bob(open_door, by_session) as (ann, bob):
        await ann.set_logging_level("error")
        await bob.set_logging_level("debug")
        assert [(await seen(each))["levels"] for each in (ann, bob)] == [["error"], ["debug"]]
        await ann.set_logging_level("warning")

        assert [(await seen(each))["levels"] for each in (ann, bob)] == [["error", "warning"], ["debug"]]


@pytest.mark.requirement("M17")
async def test_a_server_behind_two_endpoints_logs_at_the_lower_of_the_levels_that_are_wanted(
    open_door: OpenDoor, tmp_path: Path
) -> None:
    journal = tmp_path / "seen"
    spec = ServerSpec(name="watched", command=sys.executable, args=(str(SERVERS / "watched.py"), str(journal)))
    async with (
        open_door(spec, toolsets={"few": {"tools": ["*"]}}) as (url, _),
        Client(url, mode="legacy", cache=None) as ann,
        Client(f"{url}/few", mode="legacy", cache=None) as bob,
    ):
        await ann.set_logging_level("debug")
        await bob.set_logging_level("error")
        assert journal.read_text().splitlines()[-1] == "setLevel debug"
