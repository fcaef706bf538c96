from __future__ import annotations

import asyncio

from backends import Backend
from pegboard.model import Replica
from pegboard.stores.retention import ALIVE
from pegboard.testing import FakeClock

A, B, C = (Replica(id=name, url=f"http://10.0.0.{number}:7332") for number, name in enumerate("abc"))


async def test_who_lives_is_known_to_all_by_their_ids(shared: Backend) -> None:
    for replica in (C, A):
        await shared.replicas().beat(replica)

    assert await shared.replicas().beat(B) == [A, B, C]


async def test_who_says_nothing_for_a_while_is_taken_to_be_dead(shared: Backend, clock: FakeClock) -> None:
    await shared.replicas().beat(A)
    clock.advance(ALIVE - 1)
    assert await shared.replicas().beat(B) == [A, B]
    clock.advance(1)

    assert await shared.replicas().beat(C) == [B, C]


async def test_who_beats_again_lives_on_and_can_move(shared: Backend, clock: FakeClock) -> None:
    moved = Replica(id="a", url="http://10.0.0.9:7332")
    await shared.replicas().beat(A)
    clock.advance(ALIVE - 1)
    await shared.replicas().beat(moved)
    clock.advance(ALIVE - 1)

    assert await shared.replicas().beat(B) == [moved, B]


async def test_who_leaves_is_gone_at_once(shared: Backend) -> None:
    await shared.replicas().beat(A)
    await shared.replicas().leave(A)
    await shared.replicas().leave(C)

    assert await shared.replicas().beat(B) == [B]


async def test_many_may_beat_at_once(shared: Backend) -> None:
    every = [Replica(id=f"{number:02}", url="http://box") for number in range(20)]

    await asyncio.gather(*(shared.replicas().beat(replica) for replica in every))

    assert await shared.replicas().beat(every[0]) == every
