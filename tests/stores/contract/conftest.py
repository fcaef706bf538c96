"""Each test of the contract runs over every backend, with data of its own that it leaves no trace of."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

import pytest

from backends import BACKENDS, LASTING, Another, Backend, params
from pegboard.protocols import Clock
from pegboard.testing import FakeClock


@asynccontextmanager
async def made(kind: type[Backend], clock: Clock, folder: Path) -> AsyncIterator[Backend]:
    backend = kind(clock, folder / f"{len(list(folder.iterdir()))}")
    try:
        yield backend
    finally:
        await backend.close()


@pytest.fixture(params=params(BACKENDS))
async def backend(request: pytest.FixtureRequest, clock: FakeClock, tmp_path: Path) -> AsyncIterator[Backend]:
    async with made(request.param, clock, tmp_path) as opened:
        yield opened


@pytest.fixture(params=params(LASTING))
async def lasting(request: pytest.FixtureRequest, clock: FakeClock, tmp_path: Path) -> AsyncIterator[Backend]:
    async with made(request.param, clock, tmp_path) as opened:
        yield opened


@pytest.fixture(params=params(kind for kind in BACKENDS if kind.shared))
async def shared(request: pytest.FixtureRequest, clock: FakeClock, tmp_path: Path) -> AsyncIterator[Backend]:
    """Those that know which processes serve together."""
    async with made(request.param, clock, tmp_path) as opened:
        yield opened


@pytest.fixture
async def another(clock: FakeClock, tmp_path: Path) -> AsyncIterator[Another]:
    """Makes an empty backend of a kind."""
    async with AsyncExitStack() as stack:
        yield lambda kind: stack.enter_async_context(made(kind, clock, tmp_path))
