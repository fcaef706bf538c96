"""Sessions that outlive the gateway's process: killed without warning, started again on the same port."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any

import httpx2
import pytest

from doors import META, Listener, Raw
from gateway_processes import GatewayProcess
from pegboard.gateways.mcp.gateway.host import Host
from pegboard.settings.server_spec import ServerSpec
from processes import until

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="SIGKILL is POSIX")

OpenDoor = Callable[..., AbstractAsyncContextManager[tuple[str, Host]]]


@pytest.fixture
def gateway(tmp_path: Path) -> Iterator[GatewayProcess]:
    gateway = GatewayProcess(tmp_path)
    gateway.start()
    yield gateway
    gateway.kill()


@pytest.fixture
async def http() -> AsyncIterator[httpx2.AsyncClient]:
    limits = httpx2.Limits(max_connections=50, max_keepalive_connections=0)
    async with httpx2.AsyncClient(trust_env=False, timeout=60, limits=limits) as client:
        yield client


@pytest.mark.requirement("mcp.sessions-go-on")
async def test_the_sdks_client_goes_on_with_its_tools_after_the_gateway_was_killed(gateway: GatewayProcess) -> None:
    listener = Listener(gateway.url)
    async with listener.client:
        assert await listener.search("add two numbers") == ["add"]
        assert await listener.listed() == ["add"]
        gateway.kill()
        gateway.start()
        assert await listener.listed() == ["add"]
        assert await listener.call("add", a=1, b=2) == "3"
        told = listener.told
        assert await listener.search("echo a text back") == ["echo"]
        assert set(await listener.listed()) == {"add", "echo"}
        assert listener.told > told


@pytest.mark.requirement("mcp.sessions-go-on")
@pytest.mark.requirement("M6")
async def test_after_a_kill_in_the_middle_of_searches_no_session_has_what_it_did_not_search_for(
    gateway: GatewayProcess, http: httpx2.AsyncClient
) -> None:
    queries = {"add": "add two numbers", "echo": "echo a text back", "folder": "return the working directory"}
    clients = [await Raw(http, gateway.url).begin() for _ in range(12)]
    wanted = [list(queries)[number % 3] for number in range(12)]

    async def search_on(client: Raw, tool: str, acknowledged: list[str]) -> None:
        while True:
            try:
                acknowledged += await client.search(queries[tool], limit=1)
                await client.names()
            except (httpx2.HTTPError, AssertionError, KeyError):
                return

    answers: list[list[str]] = [[] for _ in clients]
    searching = [asyncio.create_task(search_on(*each)) for each in zip(clients, wanted, answers, strict=True)]
    await until(lambda: sum(map(bool, answers)) >= 6)
    await asyncio.to_thread(gateway.kill)
    await asyncio.gather(*searching)
    await asyncio.to_thread(gateway.start)

    for client, tool, acknowledged in zip(clients, wanted, answers, strict=True):
        listed = set(await client.names()) - set(META)
        assert listed <= {tool}
        assert not acknowledged or listed == {tool}, "what was answered was kept"


async def test_many_sessions_go_on_at_once_and_a_stream_of_theirs_brings_news(
    gateway: GatewayProcess, http: httpx2.AsyncClient
) -> None:
    clients = [await Raw(http, gateway.url).begin() for _ in range(30)]
    await asyncio.gather(*(client.search("add two numbers", limit=1) for client in clients[:15]))
    await asyncio.to_thread(gateway.kill)
    await asyncio.to_thread(gateway.start)

    async with clients[0].stream() as heard:
        listed = await asyncio.gather(*(client.names() for client in clients))
        assert [names[4:] for names in listed] == [["add"]] * 15 + [[]] * 15
        await clients[1].call("grow", name="wombat", times=1)
        await until(lambda: "notifications/tools/list_changed" in heard)
    assert (await Raw(http, gateway.url, session="0" * 32).post("tools/list", {})).status == 404


async def test_a_session_that_was_ended_stays_ended(gateway: GatewayProcess, http: httpx2.AsyncClient) -> None:
    ended, other = await Raw(http, gateway.url).begin(), await Raw(http, gateway.url).begin()
    for client in (ended, other):
        await client.search("add two numbers", limit=1)
    await ended.end()
    await asyncio.to_thread(gateway.kill)
    await asyncio.to_thread(gateway.start)
    assert (await ended.post("tools/list", {})).status == 404
    assert await other.names() == [*META, "add"]
    assert await other.end() in (200, 204)
    assert (await other.post("tools/list", {})).status == 404


async def test_requests_at_once_of_one_session_begin_it_once_more_and_no_oftener(
    open_door: OpenDoor, http: httpx2.AsyncClient, caplog: pytest.LogCaptureFixture
) -> None:
    async with open_door() as (url, _):
        client = await Raw(http, url).begin()
        await client.search("add two numbers", limit=1)
        told = dict(vars(client))
    async with open_door() as (url, _):
        client = Raw(**(told | {"url": url}))
        with caplog.at_level("INFO", "pegboard"):
            answers: list[Any] = await asyncio.gather(*(client.names() for _ in range(20)))
        assert answers == [[*META, "add"]] * 20
        assert [record.message for record in caplog.records if "continues" in record.message] == [
            "A session of an earlier process continues"
        ]
        assert (await client.post("tools/list", {})).headers.get("mcp-session-id") in (None, client.session)


async def test_a_session_that_goes_on_is_told_of_changes_although_it_listed_before_the_restart(
    open_door: OpenDoor, http: httpx2.AsyncClient
) -> None:
    async with open_door() as (url, _):
        client = await Raw(http, url).begin()
        assert await client.names() == META
    async with open_door() as (url, _):
        client.url = url
        async with client.stream() as heard:
            await (await Raw(http, url).begin()).call("grow", name="wombat", times=1)
            await until(lambda: "notifications/tools/list_changed" in heard)


async def test_a_session_that_goes_on_watches_what_it_watched_and_keeps_its_log_level(
    open_door: OpenDoor, http: httpx2.AsyncClient, tmp_path: Path
) -> None:
    client = Raw(http, "")
    watching = str(Path(__file__).parents[2] / "servers" / "watched.py")
    server = ServerSpec(name="watched", command=sys.executable, args=(watching, str(tmp_path / "seen")))

    def asked() -> list[str]:
        return (tmp_path / "seen").read_text().splitlines() if (tmp_path / "seen").exists() else []

    async with open_door(server) as (client.url, _):
        await client.begin()
        for name in ("one", "two"):
            await client.result("resources/subscribe", uri=f"note://watched/{name}")
        await client.result("resources/unsubscribe", uri="note://watched/two")
        await client.result("logging/setLevel", level="error")
    (tmp_path / "seen").unlink()
    async with open_door(server) as (client.url, host):
        await client.names()
        await until(lambda: "subscribe note://watched/one" in asked())
        await until(lambda: host.gateway().levels.of(client.session) == "error")
        assert not any("two" in each for each in asked())
