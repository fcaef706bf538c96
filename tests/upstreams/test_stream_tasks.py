from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import cast

import anyio
import pytest
from mcp import Client

from pegboard.settings.server_spec import ServerSpec
from pegboard.testing import FakeClock
from pegboard.upstreams.connection import Connection
from pegboard.upstreams.error_text import Redactor
from pegboard.upstreams.fleet_options import FleetOptions
from pegboard.upstreams.stream_tasks import StreamTasks
from pegboard.upstreams.subscriptions import ResourceSubscriptions
from pegboard.upstreams.upstream import Upstream


async def nothing(*_news: object) -> None:
    """Of no interest here."""


REDACTED = Redactor(ServerSpec(name="files", command="files"), {})


async def forever() -> None:
    await anyio.sleep_forever()


async def test_a_stream_that_is_opened_early_begins_with_the_connection_unless_it_was_closed() -> None:
    streams, begun = StreamTasks(), list[str]()

    def named(name: str) -> None:
        async def stream() -> None:
            await anyio.lowlevel.checkpoint()
            begun.append(name)
            await forever()

        assert streams.open(name, stream)

    named("early")
    named("closed")
    streams.close("closed")
    async with anyio.create_task_group() as tasks:
        with streams.running(tasks):
            named("late")
            await anyio.wait_all_tasks_blocked()
            assert begun == ["early", "late"]
            tasks.cancel_scope.cancel()


async def test_a_resource_that_is_watched_before_the_connection_serves_keeps_it_from_nothing() -> None:
    client = cast(Client, SimpleNamespace(session=SimpleNamespace(discover_result=object())))
    with anyio.fail_after(60):
        await ResourceSubscriptions("files", REDACTED).add(client, "file:///notes", seconds=3600)


class Slow:
    """A connection to a server that is asked to watch, and does not say whether it does until ``go_on``."""

    over = False

    def __init__(self) -> None:
        self.asked, self.go_on = asyncio.Event(), asyncio.Event()
        self.streams: set[str] = set()

    async def watch(self, uri: str) -> None:
        if uri in self.streams:
            return
        self.streams.add(uri)
        self.asked.set()
        await self.go_on.wait()

    def close_stream(self, uri: str) -> None:
        self.streams.discard(uri)

    def watch_task(self, task: str) -> None:
        self.streams.add(task)

    def unwatch_task(self, task: str) -> None:
        self.streams.discard(task)


def connected(connection: Slow, clock: FakeClock) -> Upstream:
    options = FleetOptions(connect_timeout=60, call_timeout=60, clock=clock, environment={})
    upstream = Upstream(ServerSpec(name="files", command="files"), nothing, options, nothing)
    upstream._connection = cast(Connection, connection)
    return upstream


async def test_a_server_of_whose_task_somebody_hears_is_not_idle(clock: FakeClock) -> None:
    """It would be ended, and the task with it."""
    slow = Slow()
    upstream = connected(slow, clock)
    await upstream.watch_task("t")
    clock.advance(1000)
    assert (upstream.unused_for, slow.streams) == (0, {"t"})
    upstream.unwatch_task("t")
    clock.advance(10)
    assert (upstream.unused_for, slow.streams) == (10, set())


@pytest.mark.parametrize("beside", [False, True], ids=["alone", "beside another"])
async def test_who_gives_up_before_the_server_watches_leaves_no_stream_unless_another_watches(beside: bool) -> None:
    uri, slow = "file:///notes", Slow()
    upstream = connected(slow, FakeClock())
    watching = asyncio.create_task(upstream.watch(uri))
    await slow.asked.wait()
    if beside:
        await upstream.watch(uri)
    watching.cancel()
    await asyncio.wait([watching])

    assert slow.streams == ({uri} if beside else set())
    assert upstream.watches(uri) == beside


async def test_there_is_one_stream_about_a_thing_until_it_ends_or_is_closed() -> None:
    streams = StreamTasks()

    async def short() -> None:
        await anyio.lowlevel.checkpoint()

    async with anyio.create_task_group() as tasks:
        with streams.running(tasks):
            assert streams.open("a", forever)
            assert not streams.open("a", forever)
            streams.close("a")
            assert streams.open("a", short)
            await anyio.wait_all_tasks_blocked()
            assert streams.open("a", forever)
            tasks.cancel_scope.cancel()
