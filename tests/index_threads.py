"""The threads on which indexes of large boards are built, kept busy."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from threading import Event

from pegboard.retrieval.index_thread import on_index_thread

SECONDS = 60


@asynccontextmanager
async def busy(*tools: int) -> AsyncIterator[None]:
    """Within it, the threads for boards of so many tools are at work on something else."""
    go = Event()

    async def at_work(many: int) -> None:
        begun = Event()

        def work() -> None:
            begun.set()
            assert go.wait(SECONDS)

        tasks.append(asyncio.create_task(on_index_thread(many, work)))
        assert await asyncio.to_thread(begun.wait, SECONDS)

    tasks: list[asyncio.Task[None]] = []
    try:
        for many in tools:
            await at_work(many)
        yield
    finally:
        go.set()
        await asyncio.gather(*tasks)
