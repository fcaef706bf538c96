"""What calls cost: limits that are never passed and block nothing that fits, with a store and without one."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from decimal import Decimal
from typing import Any

import anyio
import pytest
from hypothesis import given
from hypothesis import strategies as st

from failing import Failing
from pegboard import call_charges as ledgers
from pegboard.call_charges import CallCharges
from pegboard.errors import ConfigError, NotApproved, SpendLimitReached, StoreError, UpstreamError
from pegboard.gateways.mcp.transport.client_connection import STREAM
from pegboard.model import ToolId
from pegboard.protocols import Spend
from pegboard.settings.storage import SpendSettings
from pegboard.spend_limits import Account, Limits, NanoUsd, Reservation, nano_usd
from pegboard.stores import MemorySpend
from pegboard.testing import FakeClock
from pegboard.upstreams import NotCarriedOut
from processes import until

PAY, FREE = ToolId("shop", "buy"), ToolId("shop", "look")
PRICES = {"shop/buy": 1.0}


@pytest.fixture
def store(clock: FakeClock) -> Failing:
    return Failing(MemorySpend(clock))


async def used(store: Failing | Spend) -> Decimal:
    """Dollars that are spent or held back, over all sessions."""
    inner = store.store if isinstance(store, Failing) else store
    with pytest.raises(SpendLimitReached) as caught:
        await inner.reserve(Account(session="who asks"), NanoUsd(1), Limits(key=NanoUsd(0)))
    return Decimal(caught.value.used).scaleb(-9)


def made(store: Any, clock: FakeClock, **options: Any) -> CallCharges:
    return CallCharges(store, SpendSettings(**({"prices": PRICES} | options)), clock)


async def pay(ledger: CallCharges, session: str | None = "one", error: BaseException | None = None) -> None:
    async with ledger.charged(session, PAY):
        if error is not None:
            raise error


async def test_a_charge_that_no_store_should_refuse_ends_the_settling_of_none(
    store: Failing, clock: FakeClock, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(ledgers, "FLUSH_SECONDS", 0.01)
    ledger, tried = made(store, clock), list[int]()

    async def broken() -> None:
        tried.append(1)
        raise ValueError

    monkeypatch.setattr(ledger, "_expire", broken)
    running = asyncio.create_task(ledger.run())
    await until(lambda: len(tried) > 1)
    running.cancel()

    assert "could not be settled" in caplog.text


async def test_a_price_is_that_of_the_first_pattern_that_fits_and_none_is_free(
    store: Failing, clock: FakeClock
) -> None:
    ledger = made(store, clock, prices={"shop/look": 0, "shop/*": 0.5, "*": 2}, day=0.1)

    assert [ledger.price(tool) for tool in (FREE, PAY, ToolId("bank", "pay"))] == [0, nano_usd("0.5"), nano_usd(2)]
    async with ledger.charged("one", FREE):
        pass
    assert store.asked == [], "what is free asks no store"


async def test_what_a_server_says_its_tool_costs_is_charged_where_that_is_configured(
    store: Failing, clock: FakeClock
) -> None:
    prices = {"shop/look": 0}
    silent, declared = made(store, clock, prices=prices), made(store, clock, prices=prices, declared=True, day=1)

    assert silent.price(PAY, 0.25) == 0
    assert [declared.price(tool, 0.25) for tool in (PAY, FREE)] == [nano_usd("0.25"), 0], "a pattern comes first"
    assert declared.price(PAY) == 0
    assert declared.price(PAY, 1e300) == nano_usd(1e6)
    async with declared.charged("one", PAY, stated=0.25):
        pass
    assert await used(store) == Decimal("0.25")
    with pytest.raises(SpendLimitReached):
        async with declared.charged("one", PAY, stated=0.8):
            pass


@pytest.mark.parametrize(
    ("error", "dollars"),
    [
        (None, 1),
        (UpstreamError("shop", "It did not answer within 5 s."), 1),
        (RuntimeError("whatever"), 1),
        (NotCarriedOut("shop", "It cannot be reached."), 0),
        (NotApproved("shop/buy", "changed"), 0),
    ],
)
async def test_a_call_is_charged_where_the_server_may_have_done_the_work(
    store: Failing, clock: FakeClock, error: Exception | None, dollars: int
) -> None:
    ledger = made(store, clock)

    if error is None:
        await pay(ledger)
    else:
        with pytest.raises(type(error)):
            await pay(ledger, error=error)

    assert await used(store) == dollars


async def test_a_call_that_a_limit_has_no_room_for_is_not_made(store: Failing, clock: FakeClock) -> None:
    ledger, sent = made(store, clock, session=2), []

    for _ in range(2):
        await pay(ledger)
    with pytest.raises(SpendLimitReached, match=r"\$2 per session"):
        async with ledger.charged("one", PAY):
            sent.append("one")
    await pay(ledger, "two")

    assert (sent, await used(store)) == ([], 3)


async def test_prices_and_limits_can_change_while_it_runs(store: Failing, clock: FakeClock) -> None:
    ledger = made(store, clock, day=1)
    await pay(ledger)

    ledger.adopt(SpendSettings(prices={"*": 2}, day=3))
    await pay(ledger)

    assert await used(store) == 3


async def test_with_a_limit_and_no_store_a_call_is_refused_and_says_what_to_do(
    store: Failing, clock: FakeClock
) -> None:
    ledger, sent = made(store, clock, day=100), []
    store.down = True

    with pytest.raises(StoreError, match=r"'shop/buy' costs \$1 .* Try again later") as caught:
        async with ledger.charged("one", PAY):
            sent.append("one")
    async with ledger.charged("one", FREE):
        sent.append("free")
    store.down = False
    await pay(ledger)

    assert sent == ["free"]
    assert "The store is down" not in str(caught.value), "where the store is, is not the caller's business"
    assert await used(store) == 1


async def test_without_a_limit_and_without_a_store_calls_go_on_and_are_charged_when_it_is_back(
    store: Failing, clock: FakeClock, caplog: pytest.LogCaptureFixture
) -> None:
    ledger = made(store, clock)
    store.down = True
    for _ in range(3):
        await pay(ledger)
    store.down = False

    await pay(ledger)
    assert await used(store) == 2, "its own price, and one that was kept: no call waits for all of them"
    await ledger.close()

    assert await used(store) == 4
    assert caplog.records == [], "the breaker of the store says it"


async def test_a_store_that_fails_otherwise_is_said_once_until_it_works_again(
    clock: FakeClock, caplog: pytest.LogCaptureFixture
) -> None:
    class Broken(MemorySpend):
        broken = True

        async def reserve(self, account: Account, amount: NanoUsd, limits: Limits) -> Reservation:
            if self.broken:
                raise ConfigError("The disk is full.", remedy="Empty it.")
            return await super().reserve(account, amount, limits)

    store = Broken(clock)
    ledger = made(store, clock)
    for broken in (True, True, False, True):
        store.broken = broken
        await pay(ledger)

    assert [record.message for record in caplog.records] == [
        "Charges for calls cannot be stored: The disk is full. Empty it."
    ] * 2


@pytest.mark.parametrize("how", ["down", "deaf"])
async def test_what_the_store_could_not_be_told_at_the_end_of_a_call_is_charged_once_when_it_is_back(
    store: Failing, clock: FakeClock, how: str
) -> None:
    ledger = made(store, clock, day=1)
    async with ledger.charged("one", PAY):
        setattr(store, how, True)
    clock.advance(700)  # nothing holds the money back any more
    setattr(store, how, False)

    with pytest.raises(SpendLimitReached):
        await pay(ledger)

    assert await used(store) == 1


async def test_kept_charges_are_made_in_the_background(store: Failing, clock: FakeClock) -> None:
    ledger = made(store, clock)
    store.down = True
    await pay(ledger)
    store.down = False

    running = asyncio.create_task(ledger.run())
    await until(lambda: "settle" in store.asked)
    running.cancel()

    assert await used(store) == 1


async def test_of_too_many_kept_charges_the_oldest_are_lost_and_it_is_said(
    store: Failing, clock: FakeClock, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(ledgers, "MOST_KEPT", 3)
    ledger = made(store, clock)
    store.down = True
    for _ in range(5):
        await pay(ledger)
    store.down = False

    await ledger.close()

    assert await used(store) == 3
    assert [record.message for record in caplog.records if record.levelno == logging.WARNING] == [
        "More than 3 charges are waiting for the store: the oldest are lost.",
        "Charges for 2 calls could not be stored and are lost.",
    ]


async def test_what_cannot_be_charged_at_the_end_is_said(
    store: Failing, clock: FakeClock, caplog: pytest.LogCaptureFixture
) -> None:
    ledger = made(store, clock)
    store.down = True
    await pay(ledger)

    await ledger.close()

    assert "Charges for 1 calls" in caplog.text


@pytest.mark.parametrize("moment", range(8))
async def test_a_client_that_hangs_up_leaves_no_money_held(clock: FakeClock, moment: int) -> None:
    """Whenever it does: before the call is sent it costs nothing, and after that its price."""
    sent, slow = [], Slow(clock)
    ledger = made(slow, clock, day=1)

    async def call() -> None:
        async with ledger.charged("one", PAY):
            sent.append("sent")
            await anyio.sleep_forever()

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(call)
        for _ in range(moment):
            await anyio.lowlevel.checkpoint()
        tasks.cancel_scope.cancel()

    assert await used(slow.inner) == len(sent)
    assert not slow.inner._held


async def test_what_nobody_settles_is_forgotten_now_and_then(store: Failing, clock: FakeClock) -> None:
    ledger = made(store, clock)
    for seconds in (0, 10, 3600):
        clock.advance(seconds)
        running = asyncio.create_task(ledger.run())
        for _ in range(5):
            await asyncio.sleep(0)
        running.cancel()

    assert store.asked == ["expire", "expire"]


@pytest.mark.requirement("M30")
async def test_a_session_is_known_to_the_store_by_a_hash_and_streams_of_two_processes_are_two(
    clock: FakeClock,
) -> None:
    seen: list[str] = []

    class Noting(MemorySpend):
        async def reserve(self, account: Account, amount: NanoUsd, limits: Limits) -> Reservation:
            seen.append(account.session)
            return await super().reserve(account, amount, limits)

    store = Noting(clock)
    one, two = made(store, clock), made(store, clock)
    for ledger, session in ((one, "secret"), (two, "secret"), (one, STREAM), (one, STREAM), (two, STREAM), (one, None)):
        await pay(ledger, session)

    assert "secret" not in "".join(seen)
    assert seen[0] == seen[1] != seen[2] == seen[3] != seen[4]
    assert seen[5] == ""


class Slow:
    """A store that lets others go first, before and after."""

    def __init__(self, clock: FakeClock, turns: Sequence[int] = (1,)) -> None:
        self.inner = MemorySpend(clock)
        self.turns = list(turns)

    async def reserve(self, account: Account, amount: NanoUsd, limits: Limits) -> Reservation:
        await self.wait()
        held = await self.inner.reserve(account, amount, limits)
        await self.wait()
        return held

    async def settle(self, reservation: Reservation, actual: NanoUsd) -> None:
        await self.wait()
        await self.inner.settle(reservation, actual)
        await self.wait()

    async def expire(self) -> int:
        return await self.inner.expire()

    async def wait(self) -> None:
        self.turns.append(self.turns.pop(0))
        for _ in range(self.turns[-1]):
            await asyncio.sleep(0)


CALL = st.tuples(
    st.integers(1, 4),  # price
    st.sampled_from(["answers", "breaks", "not sent", "cancelled"]),
    st.integers(0, 6),  # turns before it begins
    st.integers(0, 6),  # turns that it takes
    st.booleans(),  # the store fails for a while as it begins
)


@given(calls=st.lists(CALL, max_size=14), limit=st.integers(0, 20), turns=st.lists(st.integers(0, 3), min_size=1))
def test_however_calls_interleave_no_limit_is_passed_and_nothing_that_fits_is_blocked(
    calls: list[tuple[int, str, int, int, bool]], limit: int, turns: list[int]
) -> None:
    asyncio.run(interleaved(calls, limit, turns))


async def interleaved(calls: list[tuple[int, str, int, int, bool]], limit: int, turns: list[int]) -> None:
    clock = FakeClock(1.0)
    slow = Slow(clock, turns)
    store = Failing(slow)
    prices = {f"shop/{price}": float(price) for price in range(1, 5)}
    ledger = made(store, clock, prices=prices, day=limit)
    spent: list[int] = []
    refused: list[int] = []

    async def call(price: int, end: str, before: int, takes: int, fails: bool) -> None:
        for _ in range(before):
            await asyncio.sleep(0)
        store.down = fails
        try:
            with anyio.CancelScope() as scope:
                async with ledger.charged("one", ToolId("shop", str(price))):
                    store.down = False
                    if end != "not sent":
                        spent.append(price)
                    assert await used(slow.inner) <= limit
                    for _ in range(takes):
                        await asyncio.sleep(0)
                    if end == "cancelled":
                        scope.cancel()
                        await asyncio.sleep(0)
                    if end == "breaks":
                        raise UpstreamError("shop", "It broke.")
                    if end == "not sent":
                        raise NotCarriedOut("shop", "It is not there.")
        except SpendLimitReached as error:
            refused.append(error.used + nano_usd(price))
        except (UpstreamError, StoreError):
            pass
        finally:
            store.down = False

    await asyncio.gather(*(call(*each) for each in calls))
    await ledger.close()

    assert await used(slow.inner) == sum(spent) <= limit
    assert all(amount > nano_usd(limit) for amount in refused), "it did not fit at that moment"
    for price in range(1, 5):
        fits = sum(spent) + price <= limit
        try:
            async with ledger.charged("two", ToolId("shop", str(price))):
                assert fits
                raise NotCarriedOut("shop", "Only to see whether it fits.")
        except SpendLimitReached:
            assert not fits
        except NotCarriedOut:
            pass
