from __future__ import annotations

from types import SimpleNamespace
from typing import cast

import anyio
from mcp import Client

from pegboard.upstreams.stream_tasks import StreamTasks
from pegboard.upstreams.subscriptions import ResourceSubscriptions


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
        await ResourceSubscriptions("files").add(client, "file:///notes", seconds=3600)


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
