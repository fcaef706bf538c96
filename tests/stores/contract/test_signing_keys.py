from __future__ import annotations

import asyncio

from backends import Backend
from pegboard.model import SigningKey

A, B, C = (SigningKey(id=name, made=100.0 + made, secret=name.encode() * 32) for made, name in enumerate("abc"))


async def test_every_process_gets_the_keys_of_all_the_oldest_first(backend: Backend) -> None:
    assert await backend.signing_keys().share([C], forget=0) == [C]
    assert await backend.signing_keys().share([A, B], forget=0) == [A, B, C]
    assert await backend.signing_keys().share([], forget=0) == [A, B, C]


async def test_a_key_that_is_there_stays_as_it_is(backend: Backend) -> None:
    await backend.signing_keys().share([A], forget=0)

    other = SigningKey(id=A.id, made=A.made, secret=b"x" * 32)

    assert await backend.signing_keys().share([other], forget=0) == [A]


async def test_what_is_too_old_is_forgotten_by_all(backend: Backend) -> None:
    await backend.signing_keys().share([A, B, C], forget=0)

    assert await backend.signing_keys().share([], forget=B.made) == [B, C]
    assert await backend.signing_keys().share([], forget=0) == [B, C]


async def test_many_may_share_at_once(backend: Backend) -> None:
    every = [SigningKey(id=f"{number:02}", made=1.0, secret=bytes([number]) * 32) for number in range(20)]

    await asyncio.gather(*(backend.signing_keys().share([key], forget=0) for key in every))

    assert await backend.signing_keys().share([], forget=0) == every
