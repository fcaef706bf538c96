"""Two hundred sessions at once, of both eras, on one board: no answer is wrong, lost or another's.

Four of the six servers report progress, log and ask in mid-call, two of each era.
"""

from __future__ import annotations

import asyncio
import os
import random
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager, AsyncExitStack
from pathlib import Path
from typing import Any

import httpx2
import pytest
from mcp import Client

from doors import META, Raw
from journals import Journal
from pegboard.gateways.mcp.gateway.host import Host
from pegboard.settings.server_spec import ServerSpec
from processes import listening
from servers.scripted import TOOLS
from talking import ASKED_BY_FORM, STEPS, hear
from upstream_specs import scripted

OpenDoor = Callable[..., AbstractAsyncContextManager[tuple[str, Host]]]

SESSIONS = 200
OPERATIONS = int(os.environ.get("TEST_OPERATIONS", "20"))
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
TALKATIVE = ("legacy-1", "modern-1", "legacy-2", "modern-2")


class Session:
    """One raw client with a memory of its own of what must be true for it."""

    def __init__(self, number: int, raw: Raw, back: httpx2.AsyncClient) -> None:
        self.back = back
        self.number = number
        self.raw = raw
        self.random = random.Random(number)
        self.enabled: dict[str, None] = {}
        """In the order of last use, as the gateway must have it."""
        self.done = 0

    async def run(self) -> None:
        if not self.raw.modern:
            await self.raw.begin()
        plain = [self.search, self.list, self.describe, self.invoke, self.add, self.echo]
        for number in range(OPERATIONS):
            first = {0: self.talk, 1: self.answer}.get(number)
            await (first or self.random.choice([*plain * 4, self.talk, self.answer]))()
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

    async def talk(self) -> None:
        """Its progress and its log are told to this session, in order, and nothing else is."""
        tag = self.unique()
        heard = await hear(self.raw, *self.talkative("talk", tag=tag), word=tag, back=self.back)
        told = [f"{tag} {step}" for step in STEPS]
        assert (heard.text, heard.progress, heard.logs, heard.questions) == (tag, told, told, 0)

    async def answer(self) -> None:
        """It is asked, once, and the server has its answer."""
        word = self.unique()
        heard = await hear(self.raw, *self.talkative("ask", what="elicit", tag=word), word=word, back=self.back)
        assert (heard.text, heard.progress, heard.logs) == (f"{word}: accept {word}", [], [])
        assert heard.questions == 1

    def talkative(self, tool: str, **arguments: str) -> tuple[str, dict[str, Any]]:
        """A call to any of the talkative servers, directly or through the tool for that."""
        server = self.random.choice(TALKATIVE)
        name = f"{server}/{tool}_{server.partition('-')[0]}"
        if self.random.random() < 0.5:
            return "invoke_tool", {"name": name, "arguments": arguments}
        return name, arguments

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


@pytest.mark.timeout(1200)
@pytest.mark.requirement("M6")
@pytest.mark.requirement("M16")
@pytest.mark.requirement("M17")
@pytest.mark.requirement("M21")
async def test_two_hundred_sessions_at_once_get_no_wrong_lost_or_crossed_answer(
    open_door: OpenDoor, tmp_path: Path
) -> None:
    trees = Journal("trees", tmp_path)
    talkative = str(Path(__file__).parents[2] / "servers" / "talkative.py")
    limits = httpx2.Limits(max_connections=64, max_keepalive_connections=64)
    async with AsyncExitStack() as stack:
        talkers = [
            ServerSpec(name=name, url=f"{stack.enter_context(listening(talkative, name.partition('-')[0]))}/mcp")
            for name in TALKATIVE
        ]
        specs = [scripted(), trees.spec(*NAMES), *talkers]
        url, host = await stack.enter_async_context(
            open_door(*specs, session_tools=CAP, call_timeout=120.0, push=False)
        )
        http = await stack.enter_async_context(httpx2.AsyncClient(trust_env=False, timeout=120, limits=limits))
        once = httpx2.Limits(max_keepalive_connections=0)  # a door may close one that rests just as it is used again
        back = await stack.enter_async_context(httpx2.AsyncClient(trust_env=False, timeout=120, limits=once))
        sessions = [
            Session(number, Raw(http, url, modern=number % EVERY_NTH_MODERN == 0, capabilities=ASKED_BY_FORM), back)
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
