"""The secrets by which sessions are known: shared by all processes, replaced with an overlap, made without a store."""

from __future__ import annotations

from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import pytest
from mcp.server.request_state import InvalidRequestState

from pegboard.errors import StoreError
from pegboard.gateways.access_keys import hashed
from pegboard.gateways.mcp.transport.auth import HOLDER_KEY, Holder
from pegboard.gateways.mcp.transport.signed_ids import KNOWN_TO_ALL, LEAST_PAUSE, ROTATION, Signing
from pegboard.model import SigningKey
from pegboard.stores import MemorySigningKeys
from pegboard.testing import FakeClock

LASTING = 1_000.0
ANN, BOB = (Holder(name="same", secret=hashed(each)) for each in ("ann", "bob"))


class Down(MemorySigningKeys):
    """A store that does not answer while ``down``."""

    down = True

    async def share(self, keys: Sequence[SigningKey], *, forget: float) -> Sequence[SigningKey]:
        if self.down:
            raise StoreError("It does not answer.", remedy="Wait.")
        return await super().share(keys, forget=forget)


async def opened(store: MemorySigningKeys, clock: FakeClock) -> Signing:
    signing = Signing(store, clock, lasting=LASTING)
    await signing.renew()
    return signing


@pytest.mark.requirement("D2")
async def test_only_the_holder_has_the_code_of_a_session(clock: FakeClock) -> None:
    signing = await opened(MemorySigningKeys(), clock)
    session = signing.session("1", ANN)

    assert await signing.owns(ANN, session)
    for holder, shown in ((BOB, session), (ANN, "1"), (ANN, "1."), (ANN, f"{session}0"), (ANN, "1.é"), (ANN, "")):
        assert not await signing.owns(holder, shown)
    assert not await (await opened(MemorySigningKeys(), clock)).owns(ANN, session), "other servers, another secret"


@pytest.mark.requirement("D2")
async def test_every_process_knows_what_another_handed_out_also_with_a_secret_just_made(clock: FakeClock) -> None:
    store = MemorySigningKeys()
    one, other = await opened(store, clock), await opened(store, clock)
    assert one.session("1", ANN) == other.session("1", ANN)

    clock.advance(ROTATION)
    await one.renew()
    assert one.session("1", ANN) == other.session("1", ANN), "nobody signs with what the others do not know yet"
    clock.advance(KNOWN_TO_ALL)
    assert one.session("1", ANN) != other.session("1", ANN)
    assert await other.owns(ANN, one.session("1", ANN)), "it looks for itself before it refuses"


@pytest.mark.requirement("D2")
async def test_secrets_are_replaced_and_a_session_lasts_all_the_same(clock: FakeClock) -> None:
    store = MemorySigningKeys()
    signing = await opened(store, clock)
    session, state = signing.session("1", ANN), signing.states.codec.seal(b"state")
    clock.advance(ROTATION - 1)
    last = signing.session("2", ANN)

    clock.advance(LASTING)
    await signing.renew()
    clock.advance(KNOWN_TO_ALL)
    await signing.renew()
    assert signing.session("1", ANN) != session
    assert await signing.owns(ANN, session)
    assert await signing.owns(ANN, last)
    assert signing.states.codec.unseal(state) == b"state"

    clock.advance(ROTATION)
    await signing.renew()
    assert not await signing.owns(ANN, session)
    with pytest.raises(InvalidRequestState):
        signing.states.codec.unseal(state)
    assert len(await store.share([], forget=0)) == 2


@pytest.mark.requirement("D2")
async def test_without_the_store_sessions_begin_too_and_hold_when_it_is_back(clock: FakeClock) -> None:
    store = Down()
    one = await opened(store, clock)
    session = one.session("1", ANN)
    assert await one.owns(ANN, session)

    store.down = False
    other = await opened(store, clock)
    await one.renew()
    clock.advance(LEAST_PAUSE)
    assert await one.owns(ANN, session)
    assert await other.owns(ANN, session)
    assert await one.owns(ANN, other.session("2", ANN))


@pytest.mark.requirement("D9")
async def test_a_store_that_lost_everything_has_the_secrets_again_and_no_session_is_lost(clock: FakeClock) -> None:
    store = MemorySigningKeys()
    one, other = await opened(store, clock), await opened(store, clock)
    session = one.session("1", ANN)

    await store.share([], forget=float("inf"))
    for each in (other, one):
        await each.renew()
    assert await one.owns(ANN, session)
    assert await other.owns(ANN, session)
    assert await (await opened(store, clock)).owns(ANN, session)


async def test_a_flood_of_unknown_ids_does_not_become_a_flood_at_the_store(clock: FakeClock) -> None:
    class Counting(MemorySigningKeys):
        asked = 0

        async def share(self, keys: Sequence[SigningKey], *, forget: float) -> Sequence[SigningKey]:
            self.asked += 1
            return await super().share(keys, forget=forget)

    store = Counting()
    signing = await opened(store, clock)
    before = store.asked
    for number in range(100):
        assert not await signing.owns(ANN, f"{number}.0")
    assert store.asked == before
    clock.advance(LEAST_PAUSE)
    assert not await signing.owns(ANN, "x.0")
    assert store.asked == before + 1


@pytest.mark.requirement("D2")
async def test_a_request_state_is_for_its_holder_and_for_the_gateway_that_made_it(clock: FakeClock) -> None:
    bound = (await opened(MemorySigningKeys(), clock)).states.bind_principal
    assert bound is not None

    def principal(name: str, holder: Holder | None) -> str | None:
        request = SimpleNamespace(scope={HOLDER_KEY: holder})
        ctx: Any = SimpleNamespace(request=request, lifespan_context=SimpleNamespace(name=name))
        return bound(ctx)

    assert principal("@ann", ANN) == principal("@ann", ANN)
    others = [principal(name, holder) for name in ("", "a", "@ann", "@bob") for holder in (None, ANN, BOB)]
    assert len(set(others)) == len(others)


async def test_no_secret_is_in_a_representation(clock: FakeClock) -> None:
    store = MemorySigningKeys()
    await opened(store, clock)
    (key,) = await store.share([], forget=0)

    assert repr(key.secret) not in repr(key)
