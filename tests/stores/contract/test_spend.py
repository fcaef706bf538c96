from __future__ import annotations

import asyncio
import random

import pytest

from backends import HOLD, Backend
from pegboard.errors import SpendLimitReached
from pegboard.protocols import Spend
from pegboard.spend_limits import Account, Limits, NanoUsd, nano_usd
from pegboard.testing import FakeClock

DAY = 86_400.0
ONE = Account(session="one", key="alice")


def usd(amount: float) -> NanoUsd:
    return nano_usd(amount)


async def left(store: Spend, account: Account, kind: str, limit: NanoUsd) -> int:
    """What a limit of this kind leaves to the account."""
    with pytest.raises(SpendLimitReached) as caught:
        await store.reserve(account, NanoUsd(limit + 1), Limits(**{kind: limit}))
    return limit - caught.value.used


async def test_a_limit_can_be_used_up_to_its_last_cent_and_not_passed(backend: Backend) -> None:
    store, limits = backend.spend(), Limits(session=usd(0.3))

    for amount in (0.1, 0.2):
        await store.settle(await store.reserve(ONE, usd(amount), limits), usd(amount))

    await store.reserve(ONE, usd(0), limits)
    with pytest.raises(SpendLimitReached, match=r"\$0\.3 per session.*\$0\.000000001: \$0\.3 are spent") as caught:
        await store.reserve(ONE, NanoUsd(1), limits)
    assert caught.value.kind == "session"


@pytest.mark.parametrize(
    ("kind", "other"),
    [
        ("session", Account(session="two", key="alice")),
        ("session", Account(session="one", key="bob")),
        ("key", Account(session="one", key="bob")),
        ("day", Account(session="one", key="bob")),
    ],
)
async def test_a_limit_holds_for_its_own_session_key_and_day(backend: Backend, kind: str, other: Account) -> None:
    store, limits = backend.spend(), Limits(**{kind: usd(1)})

    await store.reserve(ONE, usd(1), limits)
    with pytest.raises(SpendLimitReached):
        await store.reserve(ONE, usd(1), limits)

    assert (await store.reserve(other, usd(1), limits)).amount == usd(1)


async def test_a_new_day_has_its_limit_anew_and_a_key_has_not(backend: Backend, clock: FakeClock) -> None:
    store, limits = backend.spend(), Limits(day=usd(1))
    await store.settle(await store.reserve(ONE, usd(1), limits), usd(1))

    clock.advance(DAY)
    await store.settle(await store.reserve(ONE, usd(1), limits), usd(1))

    assert await left(store, ONE, "day", usd(1)) == 0
    assert await left(store, ONE, "key", usd(5)) == usd(3)


async def test_what_a_call_did_not_cost_is_free_again_and_what_it_did_cost_is_charged(backend: Backend) -> None:
    store, limits = backend.spend(), Limits(key=usd(1))

    held = await store.reserve(ONE, usd(0.9), limits)
    with pytest.raises(SpendLimitReached):
        await store.reserve(ONE, usd(0.2), limits)
    await store.settle(held, usd(0.15))

    assert await left(store, ONE, "key", usd(1)) == usd(0.85)


async def test_a_call_that_cost_more_than_was_held_is_charged_whole(backend: Backend) -> None:
    store = backend.spend()

    await store.settle(await store.reserve(ONE, usd(0.1), Limits(key=usd(1))), usd(1.5))

    assert await left(store, ONE, "key", usd(1)) == -usd(0.5)


async def test_a_call_is_charged_once(backend: Backend) -> None:
    held = await backend.spend().reserve(ONE, usd(1), Limits())

    await asyncio.gather(*(backend.spend().settle(held, usd(1)) for _ in range(4)))

    assert await left(backend.spend(), ONE, "key", usd(5)) == usd(4)


async def test_a_call_is_charged_to_the_day_it_began(backend: Backend, clock: FakeClock) -> None:
    store = backend.spend()
    clock.advance(DAY - 1_000 - 1)
    held = await store.reserve(ONE, usd(1), Limits())
    clock.advance(2)

    await store.settle(held, usd(1))

    assert await left(store, ONE, "day", usd(1)) == usd(1)


async def test_a_reservation_that_nobody_settles_expires(backend: Backend, clock: FakeClock) -> None:
    store, limits = backend.spend(), Limits(day=usd(1))
    await store.reserve(ONE, usd(1), limits)

    clock.advance(HOLD - 1)
    assert await left(store, ONE, "day", usd(1)) == 0
    clock.advance(1)

    assert await left(store, ONE, "day", usd(1)) == usd(1)


async def test_what_was_spent_is_charged_after_the_reservation_expired_too(backend: Backend, clock: FakeClock) -> None:
    store = backend.spend()
    held = await store.reserve(ONE, usd(1), Limits())
    clock.advance(HOLD + 60)

    assert await store.expire() == 0
    await store.settle(held, usd(1))

    assert await left(store, ONE, "key", usd(5)) == usd(4)


async def test_reservations_are_forgotten_a_day_after_they_expired(backend: Backend, clock: FakeClock) -> None:
    store = backend.spend()
    old = [await store.reserve(ONE, usd(1), Limits()) for _ in range(3)]
    clock.advance(HOLD + DAY)
    new = await store.reserve(ONE, usd(1), Limits())

    assert await store.expire() == 3
    assert await store.expire() == 0
    await store.settle(old[0], usd(1))
    await store.settle(new, usd(1))

    assert await left(store, ONE, "key", usd(5)) == usd(4)


async def test_a_limit_that_is_set_later_knows_what_was_spent_before(backend: Backend) -> None:
    store = backend.spend()
    await store.settle(await store.reserve(ONE, usd(2), Limits()), usd(2))

    with pytest.raises(SpendLimitReached):
        await store.reserve(ONE, usd(1), Limits(session=usd(2)))


async def test_a_refused_call_holds_nothing_back(backend: Backend) -> None:
    store = backend.spend()
    with pytest.raises(SpendLimitReached):
        await store.reserve(ONE, usd(2), Limits(session=usd(5), day=usd(1)))

    assert await left(store, ONE, "session", usd(5)) == usd(5)


async def test_concurrent_calls_fill_a_limit_exactly(backend: Backend) -> None:
    stores, limits = [backend.spend() for _ in range(4)], Limits(day=usd(0.1))

    held = await asyncio.gather(
        *(stores[task % 4].reserve(ONE, usd(0.01), limits) for task in range(40)), return_exceptions=True
    )

    assert sum(isinstance(each, SpendLimitReached) for each in held) == 30
    assert sum(not isinstance(each, BaseException) for each in held) == 10


async def test_concurrent_calls_of_any_price_never_pass_a_limit_nor_are_blocked_where_they_fit(
    backend: Backend,
) -> None:
    """Every refusal names what was used then, and the call did not fit into that."""
    stores, limit = [backend.spend() for _ in range(4)], usd(1)
    chance = random.Random(5)
    plans = [[(chance.randrange(limit // 8), chance.random()) for _ in range(6)] for _ in range(16)]
    charged: list[int] = []
    refusals: list[tuple[int, int]] = []

    async def calls(task: int) -> None:
        for amount, share in plans[task]:
            account = Account(session=str(task % 3), key="alice")
            try:
                held = await stores[task % 4].reserve(account, NanoUsd(amount), Limits(key=limit))
            except SpendLimitReached as refused:
                refusals.append((refused.used, amount))
                continue
            await stores[task % 4].settle(held, NanoUsd(int(amount * share)))
            charged.append(int(amount * share))

    await asyncio.gather(*map(calls, range(16)))

    assert sum(charged) <= limit
    assert all(used <= limit < used + amount for used, amount in refusals)
    assert await left(stores[0], ONE, "key", limit) == limit - sum(charged)


async def test_calls_over_several_limits_at_once_never_wait_for_each_other_for_ever(backend: Backend) -> None:
    stores = [backend.spend() for _ in range(4)]
    accounts = [Account(session=session, key=key) for session in "ab" for key in "xy"]

    async def call(number: int) -> None:
        store = stores[number % 4]
        await store.settle(await store.reserve(accounts[number // 4 % 4], usd(1), Limits(day=usd(99))), usd(1))

    async with asyncio.timeout(60):
        await asyncio.gather(*map(call, range(48)))

    assert await left(stores[0], Account(session="new", key="x"), "key", usd(100)) == usd(76)


@pytest.mark.parametrize("amount", [-1, -(10**12)])
async def test_no_amount_is_negative(backend: Backend, amount: int) -> None:
    store = backend.spend()
    with pytest.raises(ValueError, match="cannot be negative"):
        await store.reserve(ONE, NanoUsd(amount), Limits())
    held = await store.reserve(ONE, usd(1), Limits())
    with pytest.raises(ValueError, match="cannot be negative"):
        await store.settle(held, NanoUsd(amount))
