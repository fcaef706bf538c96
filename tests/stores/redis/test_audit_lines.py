"""An append to the audit log on Redis whose answer does not come in time."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Sequence
from contextlib import suppress
from typing import Any
from uuid import uuid4

import pytest

from pegboard.audit_entries import AuditEntry, ChainEnds, findings
from pegboard.errors import StoreError
from pegboard.stores.redis import RedisAudit, RedisServer
from pegboard.stores.redis import audit_lines as module
from pegboard.stores.redis.audit_lines import APPEND
from services import REDIS, delete_keys, needs_redis

pytestmark = needs_redis


class Deaf(RedisServer):
    """A server whose answer to an append comes too late: it has appended, or does so ``later``, or never."""

    deaf = 0
    later = False
    applies = True

    def __init__(self, *given: Any, **options: Any) -> None:
        super().__init__(*given, **options)
        self.delayed: list[Sequence[Any]] = []

    async def run(self, script: str, keys: Sequence[str], arguments: Sequence[str | int | bytes]) -> Any:
        if not self.deaf or script != APPEND:
            return await super().run(script, keys, arguments)
        self.deaf -= 1
        if self.later:
            self.delayed.append(arguments)
        elif self.applies:
            await super().run(script, keys, arguments)
        raise StoreError("The answer did not come in time.", remedy="Try again.")

    async def catch_up(self, keys: Sequence[str]) -> None:
        for arguments in self.delayed:
            await super().run(APPEND, keys, arguments)


@pytest.fixture
async def server() -> AsyncIterator[Deaf]:
    made = Deaf(REDIS, prefix=f"test {uuid4().hex}", timeout=30)
    yield made
    await delete_keys(made.prefix)
    await made.close()


def entry(number: int) -> AuditEntry:
    return AuditEntry(at=1_000.0, event="call", door="mcp", tool=f"tool_{number}")


async def tools(log: RedisAudit) -> list[str]:
    """Of every line; the chain is whole."""
    lines = [line async for line in log.read()]
    assert list(findings(lines, ChainEnds.of(await log.ends()))) == []
    return [json.loads(line)["tool"] for line in lines]


@pytest.mark.parametrize("times", [1, 2])
@pytest.mark.parametrize("way", ["done", "done later", "never done"])
@pytest.mark.parametrize("others", [False, True])
async def test_an_append_without_an_answer_that_is_tried_again_is_there_once(
    server: Deaf, way: str, times: int, others: bool
) -> None:
    log = RedisAudit(server)
    await log.append([entry(0)])
    server.deaf, server.later, server.applies = times, way == "done later", way == "done"

    for _ in range(times):
        with suppress(StoreError):  # the second time it may be known to be done
            await log.append([entry(1), entry(2)])
        left, server.deaf = server.deaf, 0
        if others:
            await RedisAudit(server).append([entry(9)])
        server.deaf = left
    server.deaf = 0
    await server.catch_up(log._keys)
    if log._unsure:
        await log.append([entry(1), entry(2)])
    await log.append([entry(3)])

    assert [tool for tool in await tools(log) if tool != "tool_9"] == [f"tool_{number}" for number in range(4)]
    assert log._unsure == {}


async def test_an_append_that_comes_late_in_the_middle_of_the_next_try_is_there_once(
    server: Deaf, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = RedisAudit(server)
    server.deaf, server.later = 1, True
    with pytest.raises(StoreError):
        await log.append([entry(1)])
    has = log._has

    async def caught_up_after(*given: Any) -> bool:
        found = await has(*given)
        await server.catch_up(log._keys)
        return found

    monkeypatch.setattr(log, "_has", caught_up_after)
    await log.append([entry(1)])

    assert await tools(log) == ["tool_1"]


async def test_what_is_remembered_of_appends_without_an_answer_is_bounded(
    server: Deaf, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "MOST_UNSURE", 3)
    log, server.deaf = RedisAudit(server), 9

    for number in range(9):
        with pytest.raises(StoreError):
            await log.append([entry(number)])

    assert [given[0].tool for given in log._unsure] == ["tool_6", "tool_7", "tool_8"]
