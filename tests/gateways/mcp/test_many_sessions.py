"""Two hundred sessions at once, of both eras, on one board: no answer is wrong, lost or another's."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager, AsyncExitStack
from pathlib import Path

import httpx2
import pytest
from mcp import Client

from doors import META, Raw
from journals import Journal
from pegboard.gateways.mcp.host import Host
from servers.scripted import TOOLS
from upstream_specs import scripted

OpenDoor = Callable[..., AbstractAsyncContextManager[tuple[str, Host]]]

SESSIONS = 200
OPERATIONS = 50
SDK_CLIENTS = 8
"""Of the sessions, those of the real SDK client, of each era in turn; the others say no more than they must."""
EVERY_NTH_MODERN = 4
TREES = [
    "ash",
    "beech",
    "cedar",
    "elm",
    "fir",
    "hazel",
    "larch",
    "maple",
    "oak",
    "pine",
    "rowan",
    "willow",
    "yew",
    "alder",
]
NAMES = [f"{tree}_{part}" for tree in TREES for part in ("leaf", "bark", "root", "seed")]
CAP = 12


class Session:
    """One raw client with a memory of its own of what must be true for it."""

    def __init__(self, number: int, raw: Raw) -> None:
        self.number = number
        self.raw = raw
        self.random = random.Random(number)
        self.enabled: dict[str, None] = {}
        """In the order of last use, as the gateway must have it."""
        self.done = 0

    async def run(self) -> None:
        if not self.raw.modern:
            await self.raw.begin()
        operations = [self.search, self.list, self.describe, self.invoke, self.add, self.echo]
        for _ in range(OPERATIONS):
            await self.random.choice(operations)()
            self.done += 1
        await self.list()

    async def search(self) -> None:
        name = self.random.choice(NAMES)
        heard = len(self.raw.heard)
        found = await self.raw.search(f"do {name}", limit=self.random.choice([1, 2]))
        assert found[0] == name
        for each in reversed(found):
            self.enabled.pop(each, None)
            self.enabled[each] = None
        self.enabled = dict.fromkeys(list(self.enabled)[-CAP:])
        if len(self.raw.heard) > heard:
            await self.list()

    async def list(self) -> None:
        listed = await self.raw.names()
        assert listed[:4] == META
        assert set(listed[4:]) == (set() if self.raw.modern else set(self.enabled)), self.number

    async def describe(self) -> None:
        names = self.random.sample(NAMES, 2)
        answer = await self.raw.ask("describe_tools", names=names)
        assert [tool["name"] for tool in answer["tools"]] == names

    async def invoke(self) -> None:
        text = self.unique()
        assert await self.raw.call("invoke_tool", name="echo", arguments={"text": text}) == text
        self.used("echo")

    async def add(self) -> None:
        first, second = self.random.randrange(10**6), self.random.randrange(10**6)
        assert await self.raw.call("add", a=first, b=second) == str(first + second)
        self.used("add")

    async def echo(self) -> None:
        text = self.unique()
        assert await self.raw.call("echo", text=text) == text
        self.used("echo")

    def used(self, name: str) -> None:
        if name in self.enabled:
            self.enabled[name] = self.enabled.pop(name)

    def unique(self) -> str:
        return f"{self.number}-{self.done}-{self.random.random()}"


async def sdk_client(number: int, url: str) -> None:
    async with Client(url, mode="legacy" if number % 2 else "auto") as client:
        for operation in range(OPERATIONS):
            text = f"sdk-{number}-{operation}"
            result = await client.call_tool("echo", {"text": text})
            assert result.content[0].text == text  # type: ignore[union-attr]


@pytest.mark.timeout(600)
@pytest.mark.requirement("M6")
@pytest.mark.requirement("M16")
async def test_two_hundred_sessions_at_once_get_no_wrong_lost_or_crossed_answer(
    open_door: OpenDoor, tmp_path: Path
) -> None:
    trees = Journal("trees", tmp_path)
    limits = httpx2.Limits(max_connections=64, max_keepalive_connections=64)
    async with AsyncExitStack() as stack:
        url, host = await stack.enter_async_context(open_door(scripted(), trees.spec(*NAMES), session_tools=CAP))
        http = await stack.enter_async_context(httpx2.AsyncClient(trust_env=False, timeout=120, limits=limits))
        sessions = [
            Session(number, Raw(http, url, modern=number % EVERY_NTH_MODERN == 0))
            for number in range(SESSIONS - SDK_CLIENTS)
        ]
        async with asyncio.TaskGroup() as tasks:
            for session in sessions:
                tasks.create_task(session.run())
            for number in range(SDK_CLIENTS):
                tasks.create_task(sdk_client(number, url))
        statuses = {status.name: status.state for status in host.fleet.status()}
    assert [session.done for session in sessions] == [OPERATIONS] * len(sessions)
    assert set(statuses.values()) == {"ready"}
    assert len(trees.starts) == 1
    assert {tool.name for tool in TOOLS}.isdisjoint(NAMES)
