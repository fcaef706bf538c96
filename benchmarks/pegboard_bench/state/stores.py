"""The stores that are measured, each with data of its own that nothing is left of."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit
from uuid import uuid4

from pegboard.clock import SYSTEM_CLOCK
from pegboard.extras import required
from pegboard.protocols import About, Archive, Sessions, Spend, Statistics
from pegboard.settings import load_settings
from pegboard.stores import MemorySessions, MemorySpend, MemoryStatistics
from pegboard.stores.state import open_state

NAMES = ("memory", "sqlite", "redis", "postgres")


@dataclass(frozen=True, slots=True, kw_only=True)
class Stores:
    """``archive`` is None where there is nothing to look at from outside."""

    sessions: Sessions
    statistics: Statistics
    spend: Spend
    archive: Archive | None = None

    async def about(self) -> About | None:
        return await self.archive.about() if self.archive else None


@asynccontextmanager
async def opened(name: str, urls: Mapping[str, str], folder: Path) -> AsyncIterator[Stores]:
    """Raises StoreError or ConfigError where nothing answers."""
    if name == "memory":
        clock = SYSTEM_CLOCK
        yield Stores(sessions=MemorySessions(clock), statistics=MemoryStatistics(), spend=MemorySpend(clock))
        return
    prefix, url = f"bench_{uuid4().hex}", urls.get(name)
    chosen = {"url": url, "prefix": prefix, "timeout": 10}
    settings = load_settings(state=chosen, state_dir=folder / prefix, cache_dir=folder / prefix)
    state = open_state(settings, SYSTEM_CLOCK)
    try:
        await state.archive.about()
        yield Stores(sessions=state.sessions, statistics=state.statistics, spend=state.spend, archive=state.archive)
        if url:
            await cleaned(url, prefix)
    finally:
        await state.close()


async def cleaned(url: str, prefix: str) -> None:
    """Remove everything under a prefix, which is a schema on PostgreSQL."""
    await CLEANERS[urlsplit(url).scheme](url, prefix)


async def _clean_redis(url: str, prefix: str) -> None:
    async with required("redis.asyncio", "redis").Redis.from_url(url) as client:
        async for key in client.scan_iter(match=f"{prefix}:*", count=5_000):
            await client.unlink(key)


async def _clean_postgres(url: str, schema: str) -> None:
    psycopg = required("psycopg", "postgres")
    async with await psycopg.AsyncConnection.connect(url) as connection:
        await connection.execute(f"DROP SCHEMA IF EXISTS {schema} CASCADE")


CLEANERS: dict[str, Callable[[str, str], Any]] = {
    "redis": _clean_redis,
    "rediss": _clean_redis,
    "postgres": _clean_postgres,
    "postgresql": _clean_postgres,
}
