from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from pegboard import Settings
from pegboard.compose import default_parts
from pegboard.gateways import lasting_work
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


async def test_what_runs_beside_a_gateway_begins_again_after_it_has_failed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Failing(Retirement):
        failed = False

        async def run(self) -> None:
            if not self.failed:
                self.failed = True
                raise RuntimeError
            await super().run()

    monkeypatch.setattr(lasting_work, "RESTART_SECONDS", 0)
    settings, retirement = Settings(cache_dir=tmp_path, state_dir=tmp_path), Failing()
    parts = default_parts(settings, encoder=FakeEncoder(), embeddings=MemoryEmbeddings(), retirement=retirement)

    async with open_host(settings, parts):
        await asyncio.wait_for(retirement.begun.wait(), 60)
    await parts.close()
