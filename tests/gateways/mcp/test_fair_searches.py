"""Callers whose searches wait take turns: who has many under way delays nobody else."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Sequence
from contextlib import AbstractAsyncContextManager

import pytest

from pegboard.gateways.mcp.gateway.caller import Caller
from pegboard.gateways.mcp.gateway.host import Host
from pegboard.gateways.mcp.gateway.search_queue import SENT_AT_ONCE, SearchesWaiting, searches_at_once
from pegboard.gateways.mcp.transport.auth import Holder
from pegboard.model import Floats
from pegboard.settings import load_settings
from pegboard.testing import FakeEncoder

OpenDoor = Callable[..., AbstractAsyncContextManager[tuple[str, Host]]]
pytestmark = pytest.mark.requirement("scale.tenants")


class SlowEncoder(FakeEncoder):
    """Takes a while for each query."""

    async def encode(self, texts: Sequence[str]) -> Floats:
        await asyncio.sleep(0.02)
        return await super().encode(texts)


@pytest.fixture
def two_cores(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "cpu_count", lambda: 2)


def of_session(name: str) -> Caller:
    return Caller(session=name)


def of_token(name: str) -> Caller:
    return Caller(session=f"session of {name}", holder=Holder(name=name, secret=name, scopes=frozenset()))


@pytest.mark.usefixtures("two_cores")
@pytest.mark.parametrize("caller", [of_session, of_token])
async def test_a_search_does_not_wait_for_the_many_of_another_caller(
    open_door: OpenDoor, caller: Callable[[str], Caller]
) -> None:
    async with open_door(replaced={"encoder": SlowEncoder()}) as (_, host):
        gateway, answered = host.gateway(), list[str]()

        async def ask(name: str, number: int) -> None:
            await gateway.search({"query": f"add the numbers {number} and {number + 1}"}, caller(name))
            answered.append(name)

        many = [asyncio.create_task(ask("many", number)) for number in range(20)]
        await asyncio.sleep(0)
        await ask("one", 100)
        await asyncio.gather(*many)

    assert answered.index("one") < 5
    assert len(answered) == 21


@pytest.mark.usefixtures("two_cores")
async def test_a_caller_with_too_many_waiting_searches_is_told_so_and_others_are_not(
    open_door: OpenDoor, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with open_door(replaced={"encoder": SlowEncoder()}) as (_, host):
        gateway = host.gateway()
        monkeypatch.setattr(host.searches._queue, "_most", 3)

        def ask(name: str) -> asyncio.Task[object]:
            return asyncio.create_task(gateway.search({"query": "add numbers"}, of_session(name)))

        many = [ask("many") for _ in range(20)]
        assert await ask("one")
        ended = await asyncio.gather(*many, return_exceptions=True)

    refused = [each for each in ended if isinstance(each, SearchesWaiting)]
    assert refused
    assert len(refused) + len([each for each in ended if isinstance(each, dict)]) == 20
    assert refused[0].message == "3 searches of this caller are waiting."


@pytest.mark.usefixtures("two_cores")
def test_more_searches_are_at_work_at_once_where_they_wait_for_a_service() -> None:
    service = {"provider": "compatible", "base_url": "http://127.0.0.1:1/v1", "model": "a"}
    assert searches_at_once(load_settings()) == 2
    assert searches_at_once(load_settings(encoder=service)) == SENT_AT_ONCE
    assert searches_at_once(load_settings(index="chroma")) == SENT_AT_ONCE
