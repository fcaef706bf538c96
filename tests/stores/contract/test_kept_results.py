from __future__ import annotations

import asyncio
from itertools import product

import pytest

from backends import Backend
from pegboard.errors import StoreError
from pegboard.testing import FakeClock

HOUR = 3600.0
MOST = 1_000


@pytest.mark.requirement("results.handles")
async def test_a_result_is_read_by_its_owner_alone_from_any_process(backend: Backend) -> None:
    await backend.results().put("ann", "r1", b"\x00body\xff", seconds=HOUR, most=MOST)

    assert await backend.results().get("ann", "r1") == b"\x00body\xff"
    assert await backend.results().get("bob", "r1") is None
    assert await backend.results().get("ann", "r2") is None


async def test_a_name_that_no_store_can_write_is_an_error_and_no_outage(backend: Backend) -> None:
    store = backend.results()
    await store.put("ann", "r1", b"body", seconds=HOUR, most=MOST)

    if backend.lasts:
        with pytest.raises(StoreError, match="surrogate"):
            await store.get("ann", "\ud800")

    assert await store.get("ann", "r1") == b"body"


async def test_it_is_gone_at_its_end_and_lasts_longer_when_it_is_put_again(backend: Backend, clock: FakeClock) -> None:
    store = backend.results()
    await store.put("ann", "r1", b"one", seconds=HOUR, most=MOST)
    await store.put("ann", "r2", b"two", seconds=HOUR, most=MOST)
    clock.advance(HOUR / 2)
    await store.put("ann", "r2", b"two", seconds=HOUR, most=MOST)
    clock.advance(HOUR / 2)

    assert await store.get("ann", "r1") is None
    assert await store.get("ann", "r2") == b"two"
    await store.expire()
    assert await store.get("ann", "r2") == b"two"


@pytest.mark.requirement("results.handles")
async def test_an_owner_has_room_for_so_many_bytes_and_the_oldest_makes_room(
    backend: Backend, clock: FakeClock
) -> None:
    store = backend.results()
    await store.put("bob", "r0", b"b" * 900, seconds=HOUR, most=MOST)
    for at in range(4):
        assert await store.put("ann", f"r{at}", b"a" * 300, seconds=HOUR, most=MOST)
        clock.advance(1)

    assert [await store.get("ann", f"r{at}") is not None for at in range(4)] == [False, True, True, True]
    assert await store.get("bob", "r0") == b"b" * 900
    assert not await store.put("ann", "r9", b"a" * 1_001, seconds=HOUR, most=MOST)
    assert await store.get("ann", "r9") is None
    assert await store.get("ann", "r3") is not None


async def test_what_was_put_last_stays_though_all_end_at_once(backend: Backend) -> None:
    store = backend.results()
    for handle in ("r9", "r1"):
        await store.put("ann", handle, b"a" * 600, seconds=HOUR, most=MOST)

    assert [await store.get("ann", handle) is not None for handle in ("r9", "r1")] == [False, True]


async def test_results_are_forgotten_by_owner_or_all(backend: Backend) -> None:
    store = backend.results()
    for owner, handle in product(("ann", "bob", "cid"), ("r1", "r2")):
        await store.put(owner, handle, b"body", seconds=HOUR, most=MOST)

    assert await store.forget("ann") == 2
    assert await store.get("ann", "r1") is None
    assert await store.get("bob", "r1") == b"body"
    assert await backend.results().forget() == 4
    assert await store.get("bob", "r1") is None


async def test_many_put_at_once_and_none_is_another_s(backend: Backend) -> None:
    stores = [backend.results() for _ in range(4)]

    async def keep(at: int) -> bool:
        owner, body = f"owner {at % 20}", f"body {at}".encode()
        await stores[at % 4].put(owner, f"r{at}", body, seconds=HOUR, most=MOST)
        return await stores[(at + 1) % 4].get(owner, f"r{at}") == body

    assert all(await asyncio.gather(*(keep(at) for at in range(60))))
