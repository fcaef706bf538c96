"""Servers that stores are tested against. Without them those tests are skipped; in CI that is a failure.

python tests/services.py     # says which of them answer; fails where one does not
"""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import sys
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from psycopg import AsyncConnection
from psycopg.sql import SQL, Identifier
from redis.asyncio import Redis

from pegboard_bench.ports import free_port
from processes import eventually

REDIS = os.environ.get("TEST_REDIS", "redis://127.0.0.1:6379/0")
POSTGRES = os.environ.get("TEST_POSTGRES", "postgresql://postgres@127.0.0.1:5432/test")


def answers(url: str) -> bool:
    parts = urlsplit(url)
    try:
        with socket.create_connection((parts.hostname or "127.0.0.1", parts.port or 0), timeout=2):
            return True
    except OSError:
        return False


async def delete_keys(prefix: str) -> None:
    """Delete what a test left on Redis."""
    async with Redis.from_url(REDIS) as client:
        keys = [key async for key in client.scan_iter(match=f"{prefix}:*", count=5_000)]
        if keys:
            await client.delete(*keys)


async def drop_schema(name: str) -> None:
    """Drop what a test left in PostgreSQL."""
    async with await AsyncConnection.connect(POSTGRES) as connection:
        await connection.execute(SQL("DROP SCHEMA IF EXISTS {} CASCADE").format(Identifier(name)))


class RedisProcess:
    """A Redis of one's own, which can be killed, stopped and started again with what it had."""

    def __init__(self, folder: Path) -> None:
        self.port = free_port()
        self.url = f"redis://127.0.0.1:{self.port}/0"
        self._folder = folder
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        options = ["--port", str(self.port), "--bind", "127.0.0.1", "--dir", str(self._folder), "--save", ""]
        durable = ["--appendonly", "yes", "--appendfsync", "always", "--maxmemory-policy", "noeviction"]
        self._process = subprocess.Popen(["redis-server", *options, *durable], stdout=subprocess.DEVNULL)
        assert eventually(lambda: answers(self.url))

    def signal(self, number: signal.Signals) -> None:
        assert self._process is not None
        self._process.send_signal(number)

    def kill(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None


needs_redis = pytest.mark.skipif(not answers(REDIS), reason=f"nothing answers at {REDIS} (TEST_REDIS)")
needs_redis_program = pytest.mark.skipif(not shutil.which("redis-server"), reason="redis-server is not installed")
needs_postgres = pytest.mark.skipif(not answers(POSTGRES), reason=f"nothing answers at {POSTGRES} (TEST_POSTGRES)")

if __name__ == "__main__":
    for missing in (url for url in (REDIS, POSTGRES) if not answers(url)):
        sys.exit(f"Nothing answers at {missing}: start it, or set TEST_REDIS and TEST_POSTGRES.")
