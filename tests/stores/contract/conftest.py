"""Each test of the contract runs over every backend, with data of its own that it leaves no trace of."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from backends import Backend, InMemory, InSqlite
from pegboard.testing import FakeClock


@pytest.fixture(params=["memory", "sqlite"])
async def backend(request: pytest.FixtureRequest, clock: FakeClock, tmp_path: Path) -> AsyncIterator[Backend]:
    backends = {"memory": lambda: InMemory(clock), "sqlite": lambda: InSqlite(clock, tmp_path)}
    made = backends[request.param]()
    yield made
    await made.close()
