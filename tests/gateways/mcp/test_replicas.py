"""Several `pegboard serve` on one store, behind a balancer that gives each connection to the next of them."""

from __future__ import annotations

import asyncio
import signal
import sys
from collections import Counter
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit
from uuid import uuid4

import httpx2
import mcp_types as types
import pytest
from mcp import Client
from mcp.server.context import CallNext, HandlerResult, ServerRequestContext

from doors import META, Raw
from gateway_processes import GatewayProcess, balanced
from pegboard.compose import opened_parts
from pegboard.gateways.access_keys import hashed
from pegboard.gateways.mcp.transport.gateway_server import GatewayServer, gateway_server
from pegboard.settings import Settings
from processes import until
from services import POSTGRES, REDIS, delete_keys, drop_schema, needs_postgres, needs_redis

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="SIGKILL is POSIX")

QUERIES = {"add": "add two numbers", "echo": "echo a text back", "folder": "return the working directory"}

SCHEMA = {"type": "object", "properties": {"text": {"type": "string"}}}

Start = Callable[..., Any]


@pytest.fixture(params=[pytest.param("redis", marks=needs_redis), pytest.param("postgres", marks=needs_postgres)])
async def state(request: pytest.FixtureRequest) -> AsyncIterator[dict[str, Any]]:
    """A store of their own, which has time to answer: a process that gave it up for a moment, as it does after two
    seconds, keeps what begins then to itself."""
    prefix = f"test_{uuid4().hex}"
    yield {"url": REDIS if request.param == "redis" else POSTGRES, "prefix": prefix, "timeout": 30}
    await (delete_keys(prefix) if request.param == "redis" else drop_schema(prefix))


@pytest.fixture
async def start(tmp_path: Path, state: dict[str, Any]) -> AsyncIterator[Start]:
    """Starts so many processes; all are killed at the end."""
    running: list[GatewayProcess] = []

    async def begin(number: int = 2, **options: Any) -> list[GatewayProcess]:
        running.extend(GatewayProcess(tmp_path / str(place), state=state, **options) for place in range(number))
        await asyncio.gather(*(asyncio.to_thread(each.start) for each in running))
        return running

    yield begin
    for each in running:
        each.kill()


@pytest.fixture
async def http() -> AsyncIterator[httpx2.AsyncClient]:
    """Every request on a connection of its own."""
    limits = httpx2.Limits(max_connections=200, max_keepalive_connections=0)
    async with httpx2.AsyncClient(trust_env=False, timeout=60, limits=limits) as client:
        yield client


@pytest.mark.requirement("design.replicas")
async def test_a_session_is_the_same_whichever_process_is_asked(start: Start, http: httpx2.AsyncClient) -> None:
    one, other = await start()
    async with balanced(one.port, other.port) as url:
        clients = [await Raw(http, url).begin() for _ in range(10)]
        wanted = [list(QUERIES)[place % 3] for place in range(10)]

        async def work(client: Raw, tool: str) -> None:
            assert await client.names() == META
            assert await client.search(QUERIES[tool], limit=1) == [tool]
            for number in range(6):
                assert await client.names() == [*META, tool]
                assert await client.call("add", a=number, b=1) == str(number + 1)

        await asyncio.gather(*(work(*each) for each in zip(clients, wanted, strict=True)))
        assert await clients[0].end() in (200, 204)
        assert [(await clients[0].post("tools/list", {})).status for _ in range(4)] == [404] * 4


@pytest.mark.requirement("design.replicas")
async def test_what_a_session_changes_on_its_servers_is_there_with_its_next_request_and_its_stream_tells(
    start: Start, http: httpx2.AsyncClient
) -> None:
    one, other = await start()
    async with balanced(one.port, other.port) as url:
        clients = [await Raw(http, url).begin() for _ in range(6)]
        for client in clients:
            assert await client.names() == META
        grown = clients[0]
        async with grown.stream() as heard, clients[1].stream(), clients[2].stream():
            await grown.call("grow", name="wombat", times=1)
            await until(lambda: "notifications/tools/list_changed" in heard)
            for _ in range(4):
                assert await grown.search("tell all about wombats", limit=1) == ["wombat"]


@pytest.mark.requirement("design.replicas")
async def test_one_is_killed_under_load_and_no_session_is_lost_and_no_answer_wrong(
    start: Start, http: httpx2.AsyncClient
) -> None:
    one, other = await start()
    async with balanced(one.port, other.port) as url:
        clients = [await Raw(http, url).begin() for _ in range(24)]
        wanted = [list(QUERIES)[place % 3] for place in range(24)]
        done, failed = Counter[str](), Counter[str]()
        killed, end = asyncio.Event(), asyncio.Event()

        async def work(place: int, client: Raw, tool: str) -> None:
            assert await client.search(QUERIES[tool], limit=1) == [tool]
            number = 0
            while not end.is_set():
                number += 1
                try:
                    names = await client.names()
                    answer = await client.call("echo", text=f"{place} {number}")
                except (httpx2.HTTPError, KeyError):  # cut off, or told that it was
                    failed["after" if killed.is_set() else "before"] += 1
                    continue
                assert names == [*META, tool]
                assert answer == f"{place} {number}"
                done["after" if killed.is_set() else "before"] += 1

        working = [
            asyncio.create_task(work(place, *each)) for place, each in enumerate(zip(clients, wanted, strict=True))
        ]
        await until(lambda: done["before"] >= 50)
        await asyncio.to_thread(one.kill)
        killed.set()
        await until(lambda: done["after"] >= 150)
        end.set()
        await asyncio.gather(*working)

        assert failed["before"] + failed["after"] <= 2 * len(clients), "only what was under way was cut off"
        for client, tool in zip(clients, wanted, strict=True):
            assert await client.names() == [*META, tool]
        await asyncio.to_thread(one.start)
        for client, tool in zip(clients, wanted, strict=True):
            assert await client.names() == [*META, tool]


@pytest.mark.requirement("design.replicas")
async def test_limits_and_statistics_are_those_of_all_together(
    start: Start, http: httpx2.AsyncClient, state: dict[str, Any]
) -> None:
    both = await start(spend={"prices": {"*/echo": 0.01}, "key": 0.25})
    async with balanced(*(each.port for each in both)) as url:
        clients = [await Raw(http, url).begin() for _ in range(10)]

        async def spend_all(client: Raw) -> int:
            results = [await client.result("tools/call", name="echo", arguments={"text": "x"}) for _ in range(5)]
            return sum(not result.get("isError") for result in results)

        assert sum(await asyncio.gather(*map(spend_all, clients))) == 25, "what fits, and not a call more"
        for _ in range(20):
            await clients[0].call("add", a=1, b=1)
    for each in both:
        await asyncio.to_thread(each.end)
    async with opened_parts(Settings(state=state)) as parts:
        calls = {tool.name: known.calls for tool, known in (await parts.statistics.read()).items()}
    assert calls == {"echo": 25, "add": 20, "": 45}, "and of the server as a whole"


@pytest.mark.requirement("design.replicas")
@needs_redis
async def test_what_a_client_replies_reaches_the_process_that_asked(
    open_door: Callable[..., Any], http: httpx2.AsyncClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def asking(ctx: ServerRequestContext[Any, Any], call_next: CallNext) -> HandlerResult:
        if ctx.method == "tools/call" and (ctx.params or {}).get("name") == "echo":
            said = await ctx.session.elicit_form("Which?", SCHEMA, ctx.request_id)
            assert said.content == (ctx.params or {})["arguments"]
        return await call_next(ctx)

    def asks(*sealed: Any, **options: Any) -> GatewayServer:
        server = gateway_server(*sealed, **options)
        server.middleware.append(asking)
        return server

    def replying(text: str) -> Callable[..., Any]:
        async def reply(_context: Any, _question: Any) -> types.ElicitResult:
            return types.ElicitResult(action="accept", content={"text": text})

        return reply

    monkeypatch.setattr("pegboard.gateways.mcp.transport.http.gateway_server", asks)
    state = {"url": REDIS, "prefix": f"test_{uuid4().hex}", "timeout": 30}
    async with AsyncExitStack() as stack:
        doors = [await stack.enter_async_context(open_door(state=state)) for _ in range(2)]
        url = await stack.enter_async_context(balanced(*(urlsplit(door).port or 0 for door, _ in doors)))
        texts = [f"client {place}" for place in range(4)]
        clients = [
            await stack.enter_async_context(Client(url, mode="legacy", cache=None, elicitation_callback=replying(text)))
            for text in texts
        ]
        for _ in range(3):
            calls = [client.call_tool("echo", {"text": text}) for client, text in zip(clients, texts, strict=True)]
            assert [answer.content[0].text for answer in await asyncio.gather(*calls)] == texts
    await delete_keys(state["prefix"])


@pytest.mark.requirement("design.replicas")
async def test_a_process_that_hangs_loses_its_sessions_to_the_other(start: Start, http: httpx2.AsyncClient) -> None:
    one, other = await start()
    direct = await Raw(http, one.url).begin()
    assert await direct.search(QUERIES["add"], limit=1) == ["add"]
    one.signal(signal.SIGSTOP)
    try:
        elsewhere = Raw(http, other.url, session=direct.session)
        assert await elsewhere.names() == [*META, "add"]
        assert await elsewhere.call("add", a=1, b=2) == "3"
    finally:
        one.signal(signal.SIGCONT)
    back = Raw(http, one.url, session=direct.session)
    assert await back.search(QUERIES["echo"], limit=1) == ["echo"]
    async with asyncio.timeout(60):  # a session is saved right after the answer
        while set(await elsewhere.names()) != {*META, "add", "echo"}:  # noqa: ASYNC110 - another process changes it
            await asyncio.sleep(0.05)


async def test_a_session_is_its_holders_on_every_process(start: Start, http: httpx2.AsyncClient) -> None:
    access = {name: {"hash": hashed(name), "tools": ["scripted/*"]} for name in ("ann", "bob")}
    one, other = await start(access=access)
    async with balanced(one.port, other.port) as url:
        ann = await Raw(http, url, headers={"authorization": "Bearer ann"}).begin()
        thief = Raw(http, url, session=ann.session, headers={"authorization": "Bearer bob"})
        for _ in range(4):
            assert await ann.call("echo", text="x") == "x"
            assert (await thief.post("tools/list", {})).status == 404
            assert (await Raw(http, url, session=ann.session).post("tools/list", {})).status == 401
