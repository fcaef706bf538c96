from __future__ import annotations

import asyncio
from pathlib import Path

from pegboard import Settings
from pegboard.compose import default_parts
from pegboard.gateways.mcp.gateway.host import open_host
from pegboard.stores import MemoryEmbeddings
from pegboard.testing import FakeEncoder


class Retirement:
    """Runs until it is cancelled."""

    def __init__(self) -> None:
        self.begun = asyncio.Event()
        self.ended = asyncio.Event()

    async def run(self) -> None:
        self.begun.set()
        try:
            await asyncio.Event().wait()
        finally:
            self.ended.set()


async def test_retention_is_applied_as_long_as_a_gateway_runs(tmp_path: Path) -> None:
    settings, retirement = Settings(cache_dir=tmp_path, state_dir=tmp_path), Retirement()
    parts = default_parts(settings, encoder=FakeEncoder(), embeddings=MemoryEmbeddings(), retirement=retirement)

    async with open_host(settings, parts):
        await retirement.begun.wait()
        assert not retirement.ended.is_set()

    await retirement.ended.wait()
    await parts.close()
