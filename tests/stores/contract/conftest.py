"""Each test of the contract runs over every backend, with data of its own that it leaves no trace of."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest

from backends import Backend, InMemory, InPostgres, InRedis, InSqlite
from pegboard.testing import FakeClock
from services import needs_postgres, needs_redis


@pytest.fixture(
    params=[
        "memory",
        "sqlite",
        pytest.param("redis", marks=needs_redis),
        pytest.param("postgres", marks=needs_postgres),
    ]
)
async def backend(request: pytest.FixtureRequest, clock: FakeClock, tmp_path: Path) -> AsyncIterator[Backend]:
    backends: dict[str, Callable[[], Backend]] = {
        "memory": lambda: InMemory(clock),
        "sqlite": lambda: InSqlite(clock, tmp_path),
        "redis": lambda: InRedis(clock),
        "postgres": lambda: InPostgres(clock),
    }
    made = backends[request.param]()
    yield made
    await made.close()
