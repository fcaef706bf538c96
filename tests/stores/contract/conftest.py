"""Each test of the contract runs over every backend, with data of its own that it leaves no trace of."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

import pytest

from backends import Backend, InMemory, InPostgres, InRedis, InSqlite
from pegboard.seams import Clock
from pegboard.testing import FakeClock
from services import needs_postgres, needs_redis

SERVERS = [pytest.param("redis", marks=needs_redis), pytest.param("postgres", marks=needs_postgres)]
LASTING = ["sqlite", *SERVERS]
"""Those that outlive a process."""


@asynccontextmanager
async def made(name: str, clock: Clock, folder: Path) -> AsyncIterator[Backend]:
    backends: dict[str, Callable[[], Backend]] = {
        "memory": lambda: InMemory(clock),
        "sqlite": lambda: InSqlite(clock, folder / f"{len(list(folder.iterdir()))}"),
        "redis": lambda: InRedis(clock),
        "postgres": lambda: InPostgres(clock),
    }
    backend = backends[name]()
    try:
        yield backend
    finally:
        await backend.close()


@pytest.fixture(params=["memory", *LASTING])
async def backend(request: pytest.FixtureRequest, clock: FakeClock, tmp_path: Path) -> AsyncIterator[Backend]:
    async with made(request.param, clock, tmp_path) as opened:
        yield opened


@pytest.fixture(params=LASTING)
async def lasting(request: pytest.FixtureRequest, clock: FakeClock, tmp_path: Path) -> AsyncIterator[Backend]:
    async with made(request.param, clock, tmp_path) as opened:
        yield opened


@pytest.fixture(params=["memory", *SERVERS])
async def shared(request: pytest.FixtureRequest, clock: FakeClock, tmp_path: Path) -> AsyncIterator[Backend]:
    """Those that know which processes serve together."""
    async with made(request.param, clock, tmp_path) as opened:
        yield opened


@pytest.fixture
async def another(clock: FakeClock, tmp_path: Path) -> AsyncIterator[Callable[[str], object]]:
    """Makes an empty backend by its name."""
    async with AsyncExitStack() as stack:
        yield lambda name: stack.enter_async_context(made(name, clock, tmp_path))
