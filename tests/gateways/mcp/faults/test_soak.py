"""Thousands of calls, and what goes wrong among them: memory and descriptors are the same after them as before.

TEST_SOAK_CALLS says how many calls; `make test-soak` makes twelve thousand, an hour of three or four a second.
"""

from __future__ import annotations

import asyncio
import gc
import os
import random
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager, AsyncExitStack

import httpx2
import pytest
from mcp import Client

from doors import Raw
from faults import PIPES, WAYS, MakeFaulty, descriptors, over, resident
from pegboard.gateways.mcp.gateway.host import Host
from processes import descendants

OpenClient = Callable[..., AbstractAsyncContextManager[Client]]
OpenDoor = Callable[..., AbstractAsyncContextManager[tuple[str, Host]]]

CALLS = int(os.environ.get("TEST_SOAK_CALLS", "4000"))
WARM_UP = 1000
AT_ONCE = 8
SESSIONS = 200
"""Conversations, one after another."""
FLAT = 12_000_000
"""Bytes that memory may be off: what an allocator keeps of a large answer, and no more however many calls."""


class Soak:
    """Clients of both eras that call, and know what each call has to answer."""

    def __init__(self, http: httpx2.AsyncClient, url: str) -> None:
        self.http = http
        self.url = url
        self.random = random.Random(7)
        self.done = 0

    async def run(self, calls: int) -> None:
        """So many calls, in conversations of a few dozen, some at a time."""
        each = max(1, calls // SESSIONS)
        left = iter([each] * (calls // each))

        async def work() -> None:
            for number in left:
                await self.conversation(number)

        await asyncio.gather(*(work() for _ in range(AT_ONCE)))

    async def conversation(self, calls: int) -> None:
        modern = self.random.random() < 0.5
        client = Raw(self.http, self.url, modern=modern, name="unknown")
        if not modern:
            await client.begin()
        for _ in range(calls):
            await self.call(client)
        if not modern:
            await client.end()

    async def call(self, client: Raw) -> None:
        self.done += 1
        text, chance = str(self.done), self.random.random()
        if chance < 0.01:
            assert await client.call("big", n=50_000) == "x" * 50_000
        elif chance < 0.03:
            assert await client.call("invoke_tool", name="twice", arguments={"text": text}) == text
        elif chance < 0.04:
            assert "cannot be read" in await client.call("nothing")
        else:
            assert await client.call("echo", text=text) == text


@over(PIPES[0], WAYS[-1])
@pytest.mark.timeout(0 if CALLS > 20_000 else 600)
@pytest.mark.requirement("M16")
@pytest.mark.requirement("M23")
async def test_memory_and_descriptors_are_flat_over_thousands_of_calls(open_door: OpenDoor, faulty: MakeFaulty) -> None:
    """Half of the calls over each way; the servers are never started again."""
    async with AsyncExitStack() as stack:
        url, host = await stack.enter_async_context(open_door(faulty(), exposure="static"))
        http = await stack.enter_async_context(httpx2.AsyncClient(trust_env=False, timeout=60))
        soak = Soak(http, url)
        await soak.run(WARM_UP)
        before = measured()
        await soak.run(CALLS // 2)
        after = measured()
        assert soak.done >= WARM_UP + CALLS // 2
        assert {status.state for status in host.fleet.status()} == {"ready"}
    print(f"{CALLS // 2:,} calls: {before[0]:,} to {after[0]:,} bytes, {before[1]} to {after[1]} descriptors")
    assert after[0] - before[0] < FLAT, f"{before[0]:,} bytes before, {after[0]:,} after"
    assert after[1] <= before[1] + AT_ONCE, "descriptors"
    assert after[2] == before[2], "processes"


def measured() -> tuple[int, int, int]:
    """Memory in bytes, open descriptors, and processes that were started."""
    gc.collect()
    return resident(), descriptors(), len(descendants(os.getpid()))
