"""When clients are told that their list of tools changed."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest
from mcp.server.subscriptions import ToolsListChanged

from pegboard.gateways.mcp.gateway import notifications as module
from pegboard.gateways.mcp.gateway.notifications import Announcer, MergedNotices
from processes import until

WINDOW = 0.05


class Client:
    """Counts what it is told."""

    def __init__(self) -> None:
        self.told = 0

    async def notify(self) -> None:
        self.told += 1


@pytest.fixture
async def announcer() -> AsyncIterator[Announcer]:
    announcer = Announcer(window=WINDOW)
    yield announcer
    announcer.close()


async def at_rest(announcer: Announcer) -> None:
    await until(lambda: not announcer._resting)


async def gone() -> None:
    raise ConnectionError("It hung up.")


async def test_the_first_change_is_told_at_once(announcer: Announcer) -> None:
    client = Client()
    announcer.connect("one", client.notify)

    assert await announcer.tell("one")
    assert client.told == 1


@pytest.mark.requirement("M18")
async def test_a_burst_is_one_notification_at_its_beginning_and_one_at_its_end(announcer: Announcer) -> None:
    client = Client()
    announcer.connect("one", client.notify)

    now = [await announcer.tell("one") for _ in range(50)]
    await at_rest(announcer)

    assert now == [True] + [False] * 49
    assert client.told == 2


async def test_a_single_change_is_told_once(announcer: Announcer) -> None:
    client = Client()
    announcer.connect("one", client.notify)

    await announcer.tell("one")
    await at_rest(announcer)
    assert client.told == 1

    await announcer.tell("one")
    assert client.told == 2


async def test_the_way_back_of_a_request_is_taken_and_the_sessions_own_at_the_end(announcer: Announcer) -> None:
    standing, asking = Client(), Client()
    announcer.connect("one", standing.notify)

    await announcer.tell("one", asking.notify)
    assert (asking.told, standing.told) == (1, 0)
    await announcer.tell("one", asking.notify)
    await at_rest(announcer)
    assert (asking.told, standing.told) == (1, 1)


async def test_a_change_of_the_board_is_told_to_every_session_and_stream(announcer: Announcer) -> None:
    clients = [Client() for _ in range(5)]
    heard: list[object] = []
    announcer.bus.subscribe(heard.append)
    for number, client in enumerate(clients):
        announcer.connect(str(number), client.notify)

    await announcer.tell_all()

    assert [client.told for client in clients] == [1] * 5
    assert [type(event) for event in heard] == [ToolsListChanged]


async def test_a_client_that_has_gone_harms_nobody(announcer: Announcer) -> None:
    client = Client()
    announcer.connect("gone", gone)
    announcer.connect("one", client.notify)

    await announcer.tell_all()
    await announcer.tell("gone")
    await at_rest(announcer)

    assert client.told == 1


async def test_a_client_that_reads_nothing_holds_nobody_up(
    announcer: Announcer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "PATIENCE", 0.05)
    client = Client()
    announcer.connect("stuck", asyncio.Event().wait)  # type: ignore[arg-type]
    announcer.connect("one", client.notify)

    async with asyncio.timeout(60):
        await announcer.tell_all()
        await announcer.tell("stuck")

    assert client.told == 1


async def test_a_session_that_has_ended_is_told_nothing(announcer: Announcer) -> None:
    client = Client()
    announcer.connect("one", client.notify)
    announcer.disconnect("one")

    await announcer.tell_all()
    await announcer.tell("one")
    announcer.disconnect("never")

    assert client.told == 0


async def test_a_session_is_told_where_it_connected_last(announcer: Announcer) -> None:
    before, now = Client(), Client()
    announcer.connect("one", before.notify)
    announcer.connect("one", now.notify)

    await announcer.tell_all()

    assert (before.told, now.told) == (0, 1)


async def test_only_so_many_ways_are_kept_those_used_last(
    announcer: Announcer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "MOST_CHANNELS", 2)
    clients = {name: Client() for name in "abc"}
    for name in "ab":
        announcer.connect(name, clients[name].notify)
    announcer.connect("a", clients["a"].notify)
    announcer.connect("c", clients["c"].notify)

    await announcer.tell_all()

    assert {name: client.told for name, client in clients.items()} == {"a": 1, "b": 0, "c": 1}


async def test_closing_leaves_no_task_and_tells_nobody() -> None:
    before = asyncio.all_tasks()
    client = Client()
    announcer = Announcer(window=600)
    for session in "abc":
        announcer.connect(session, client.notify)
    for _ in range(3):
        await announcer.tell_all()

    announcer.close()

    await until(lambda: asyncio.all_tasks() <= before)
    assert client.told == 3


async def test_of_notices_that_come_while_a_client_reads_nothing_it_gets_one_when_it_reads_again() -> None:
    merged, client, reads = MergedNotices(), Client(), asyncio.Event()

    async def notify() -> None:
        await client.notify()
        await reads.wait()

    first = asyncio.create_task(merged.send("key", notify))
    await until(lambda: client.told == 1)
    async with asyncio.timeout(60):
        for _ in range(50):
            await merged.send("key", notify)
    reads.set()
    await first

    assert client.told == 2
    assert merged._again == {}
