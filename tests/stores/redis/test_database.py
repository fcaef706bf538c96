"""What holds for stores on Redis alone; `contract` has what holds for all."""

from __future__ import annotations

import asyncio
import socket
import sys
from collections.abc import AsyncIterator, Callable
from uuid import uuid4

import numpy as np
import pytest

from pegboard.clock import SYSTEM_CLOCK
from pegboard.errors import ConfigError, StoreError
from pegboard.habits import HabitKey
from pegboard.model import Session
from pegboard.records import SwitchRecord
from pegboard.stores.backend import store_breaker
from pegboard.stores.database import Migration
from pegboard.stores.redis import (
    RedisArchive,
    RedisEmbeddings,
    RedisHabits,
    RedisServer,
    RedisSessions,
    RedisStatistics,
)
from pegboard.stores.redis.database import MIGRATIONS
from pegboard.testing import FakeClock
from pegboard_bench.ports import free_port
from records import held
from services import REDIS, delete_keys, needs_redis

Make = Callable[..., RedisServer]


@pytest.fixture
async def server() -> AsyncIterator[Make]:
    """Servers under one prefix, whose keys are deleted in the end."""
    prefix, made = f"test {uuid4().hex}", list[RedisServer]()

    def make(**options: object) -> RedisServer:
        made.append(RedisServer(REDIS, prefix=prefix, **options))  # type: ignore[arg-type]
        return made[-1]

    yield make
    await delete_keys(prefix)
    for each in made:
        await each.close()


@needs_redis
async def test_a_session_leaves_the_server_by_itself(server: Make, clock: FakeClock) -> None:
    made = server()
    await RedisSessions(made, clock, ttl=90).save(Session(id="one"))

    async with made.client() as client:
        assert 80_000 < await client.pttl(made.key("session", "one")) <= 90_000


@needs_redis
async def test_a_row_of_habits_that_cannot_be_read_hides_no_other(server: Make, clock: FakeClock) -> None:
    made = server()
    store, sums = RedisHabits(made), np.ones(4, np.float32)
    odd, plain = HabitKey("ann", "git", "a\0b"), HabitKey("ann", "git", "log")
    await store.add({plain: sums, odd: sums})
    async with made.client() as client:
        for field, value in {"ann\0git": sums.tobytes(), "ann\0git\0cut": b"123"}.items():
            await client.hset(made.key("habits"), field, value)
            await client.zadd(made.key("habits", "used"), {field: 1})
            await client.zadd(made.key("habits", "names"), {field: 0})

    assert (await store.read(["ann"])).keys() == {plain, odd}
    archived = [record async for record in RedisArchive(made, clock).read("habit")]
    assert {record.identity for record in archived} == {plain, odd, ("ann", "git", "cut")}, (
        "an archive has what there is"
    )


@needs_redis
async def test_an_embedding_has_its_whole_time_again_when_it_is_read(server: Make) -> None:
    made = server()
    await RedisEmbeddings(made, ttl=90).put({"a": np.zeros(1, np.float32)})
    await RedisEmbeddings(made, ttl=9_000).get(["a", "b"])

    async with made.client() as client:
        assert 8_900_000 < await client.pttl(made.key("embedding", "a")) <= 9_000_000
        assert await client.exists(made.key("embedding", "b")) == 0


@needs_redis
async def test_an_embedding_may_be_kept_for_ever(server: Make) -> None:
    made = server()
    await RedisEmbeddings(made, ttl=None).put({"a": np.zeros(1, np.float32)})
    await RedisEmbeddings(made, ttl=None).get(["a"])

    async with made.client() as client:
        assert await client.pttl(made.key("embedding", "a")) == -1


@needs_redis
async def test_what_was_there_before_there_were_stamps_counts_as_used_now(server: Make) -> None:
    old = server(migrations=MIGRATIONS[:1])
    async with old.client() as client:
        await client.hset(old.key("statistics"), '["git", "log"]', "1 1 1 0 0 1")
        meters = {"key alice": 5, "day 2026-01-01 alice": 5}
        await client.hset(old.key("spend", "spent"), mapping=meters)

    archive = RedisArchive(server(), SYSTEM_CLOCK)
    used = {record.identity: record.used for record in await held(archive) if hasattr(record, "used")}

    assert used.pop(("key", "alice")) is None
    assert list(used) == [("git", "log"), ("day", "2026-01-01 alice")]
    assert all(abs(each - SYSTEM_CLOCK.time()) < 60 for each in used.values())


@needs_redis
async def test_switches_of_an_older_version_are_kept(server: Make, clock: FakeClock) -> None:
    before = next(at for at, step in enumerate(MIGRATIONS) if step.name == "rejections beside switches")
    old = server(migrations=MIGRATIONS[:before])
    async with old.client() as client:
        for field, value, at in (('["git", ""]', '["", "ann"]', 1.5), ('["git", "l\\u00e9"]', '["a1", "b\\n"]', 2.5)):
            await client.hset(old.key("switches"), field, value)
            await client.zadd(old.key("switches", "at"), {field: at})

    archive = RedisArchive(server(), clock)
    kept = [record async for record in archive.read("switch")]
    removed = await archive.remove("switch", keys=[record.identity for record in kept])

    assert kept == [
        SwitchRecord(server="git", name="", definition="", who="ann", at=1.5),
        SwitchRecord(server="git", name="lé", definition="a1", who="b\n", at=2.5),
    ]
    assert removed == 2


@needs_redis
async def test_each_step_is_applied_once_and_in_order(server: Make) -> None:
    one = Migration("one", ("redis.call('RPUSH', ARGV[2] .. ':steps', 'one')",))
    two = Migration("two", ("redis.call('RPUSH', ARGV[2] .. ':steps', 'two')",))

    await asyncio.gather(*(server(migrations=[one, two]).run("return 1", [], []) for _ in range(4)))

    made = server(migrations=[one, two])
    assert await made.run("return redis.call('LRANGE', KEYS[1], 0, -1)", [made.key("steps")], []) == [b"one", b"two"]


@needs_redis
async def test_an_older_program_refuses_newer_state(server: Make) -> None:
    await RedisStatistics(server(migrations=[Migration("hashes"), Migration("streams")])).read()

    with pytest.raises(ConfigError, match=r"changed by a newer version of Pegboard \('streams'\)\. Upgrade"):
        await RedisStatistics(server()).read()


@needs_redis
async def test_more_tasks_than_connections_wait_for_their_turn(server: Make) -> None:
    made = server(connections=2)

    assert await asyncio.gather(*(made.run("return 7", [], []) for _ in range(40))) == [7] * 40


async def test_a_server_that_is_not_there_is_a_clear_error_without_the_password() -> None:
    port = free_port()
    made = RedisServer(f"redis://me:s3cret@127.0.0.1:{port}/0")

    with pytest.raises(StoreError, match=rf"Redis at 127\.0\.0\.1:{port}/0 cannot be used") as caught:
        await RedisStatistics(made).read()
    assert "s3cret" not in str(caught.value)


async def test_a_server_that_does_not_answer_is_waited_for_as_long_as_configured() -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        made = RedisServer(f"redis://127.0.0.1:{silent.getsockname()[1]}/0", timeout=0.1)

        async with asyncio.timeout(30):
            with pytest.raises(StoreError, match="cannot be used"):
                await RedisStatistics(made).read()


async def test_an_address_that_is_none_is_a_clear_error() -> None:
    with pytest.raises(ConfigError, match=r"redis://HOST:PORT/0"):
        await RedisStatistics(RedisServer("localhost")).read()


async def test_without_the_package_the_error_says_how_to_install_it(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in sys.modules if name.partition(".")[0] == "redis"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "redis", None)

    with pytest.raises(ConfigError, match=r"'redis' cannot be used.*pip install 'pegboard\[redis\]'"):
        await RedisStatistics(RedisServer(REDIS)).read()


@needs_redis
async def test_what_is_old_is_removed_by_the_first_call_after_an_outage(server: Make, clock: FakeClock) -> None:
    breaker = store_breaker(clock)
    archive = RedisArchive(server(breaker=breaker), clock)
    with pytest.raises(StoreError), breaker.call():
        raise StoreError("It is down.")
    clock.advance(2)

    assert [await archive.remove(kind, before=1.0) for kind in ("session", "meter", "statistics", "hold")] == [0] * 4
