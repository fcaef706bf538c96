"""Tokens of a sign-in on the requests of a server's connection: kept, renewed, lost."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import httpx2
import pytest

from pegboard.clock import SYSTEM_CLOCK
from pegboard.errors import UpstreamError
from pegboard.settings import Settings
from pegboard.settings.oauth_settings import OAuthSettings
from pegboard.settings.server_spec import ServerSpec
from pegboard.testing import FakeClock
from pegboard.upstreams import Fleet
from pegboard.upstreams.oauth import bearer_auth
from pegboard.upstreams.oauth.challenges import TokenNotRenewed
from pegboard.upstreams.oauth.credentials import CredentialKey
from pegboard.upstreams.oauth.oauth_login import login
from pegboard.upstreams.oauth.sign_ins import SignIns
from processes import listening, until
from signers import SIGNED, Signer, control


@pytest.fixture
def server() -> Iterator[str]:
    with listening(SIGNED) as url:
        yield url


@pytest.fixture
def sign_ins(settings: Settings) -> SignIns:
    return SignIns(settings, SYSTEM_CLOCK)


def spec_of(url: str, **fields: Any) -> ServerSpec:
    return ServerSpec(name="signed", url=f"{url}/mcp", **fields)


def key_of(url: str, user: str = "") -> CredentialKey:
    return CredentialKey(server="signed", url=f"{url}/mcp", user=user)


async def sign_in(url: str, sign_ins: SignIns, user: str = "") -> Signer:
    signer = Signer()
    key = key_of(url, user)
    made = await login(key, OAuthSettings(), signer.person(), now=SYSTEM_CLOCK.time, before=sign_ins.store.read(key))
    sign_ins.store.write(made)
    sign_ins.tell(key)
    return signer


def state(fleet: Fleet) -> str:
    return fleet.status()[0].state


@pytest.mark.requirement("023.waiting")
async def test_a_server_waits_for_a_sign_in_and_is_connected_within_seconds_of_it(
    server: str, sign_ins: SignIns, fleet_of: Callable[..., Fleet]
) -> None:
    async with fleet_of(spec_of(server), sign_ins=sign_ins) as fleet:
        await until(lambda: state(fleet) == "signed_out")
        with pytest.raises(UpstreamError, match=r"waits for a sign-in.*pegboard login signed") as refused:
            await fleet.upstreams[0].call("whose", {})
        assert refused.value.code == "sign_in_needed"
        await sign_in(server, sign_ins)
        await until(lambda: state(fleet) == "ready")
        assert (await fleet.upstreams[0].call("whose", {}))["content"][0]["text"] == "ann"


@pytest.mark.requirement("023.waiting")
async def test_a_sign_in_of_another_process_is_noticed(
    server: str, sign_ins: SignIns, fleet_of: Callable[..., Fleet], settings: Settings
) -> None:
    other = SignIns(settings, SYSTEM_CLOCK)
    async with fleet_of(spec_of(server), sign_ins=sign_ins) as fleet:
        await until(lambda: state(fleet) == "signed_out")
        await sign_in(server, other)
        await until(lambda: state(fleet) == "ready")


@pytest.mark.requirement("023.renewal")
async def test_a_token_that_ends_between_calls_is_renewed_once_for_all_of_them(
    server: str, sign_ins: SignIns, fleet_of: Callable[..., Fleet]
) -> None:
    await sign_in(server, sign_ins)
    async with fleet_of(spec_of(server), sign_ins=sign_ins) as fleet:
        await until(lambda: state(fleet) == "ready")
        await control(server, forget_access=True)
        results = await asyncio.gather(*(fleet.upstreams[0].call("whose", {}) for _ in range(20)))
        asked = (await control(server))["asked"]

    assert {each["content"][0]["text"] for each in results} == {"ann"}
    assert asked["refresh"] == 1
    assert asked["call whose"] == 20


@pytest.mark.requirement("023.renewal")
async def test_a_revoked_refresh_token_puts_the_server_back_to_waiting(
    server: str, sign_ins: SignIns, fleet_of: Callable[..., Fleet]
) -> None:
    await sign_in(server, sign_ins)
    async with fleet_of(spec_of(server), sign_ins=sign_ins) as fleet:
        await until(lambda: state(fleet) == "ready")
        await control(server, forget_access=True, forget_refresh=True)
        with pytest.raises(UpstreamError, match="waits for a sign-in"):
            await fleet.upstreams[0].call("whose", {})
        await until(lambda: state(fleet) == "signed_out")
        assert sign_ins.store.all()[0].ended
        assert [tool.name for tool in fleet.upstreams[0].tools] == ["whose", "remove"]

        await sign_in(server, sign_ins)
        await until(lambda: state(fleet) == "ready")
        assert (await control(server))["asked"]["register"] == 1


async def test_renewals_at_once_need_no_thread_that_another_one_holds(
    authorization: Callable[..., str], resource: Callable[..., str], signed_in: Callable[..., Any], settings: Settings
) -> None:
    """The address of an authorization server is resolved in a thread of the event loop, of which there are few."""
    asyncio.get_running_loop().set_default_executor(ThreadPoolExecutor(2))
    url, users = resource(authorization()), ("ann", "bob", "eve")
    made = await asyncio.gather(*(signed_in(url, user=user) for user in users))
    sign_ins = SignIns(settings, FakeClock(SYSTEM_CLOCK.time() + 86_400))
    for each in made:
        sign_ins.store.write(each)

    async def token_of(user: str) -> str:
        auth = sign_ins.auth(spec_of(url), user)
        assert auth is not None
        request = await anext(auth.async_auth_flow(httpx2.Request("POST", f"{url}/mcp")))
        return request.headers["authorization"].removeprefix("Bearer ")

    async with asyncio.timeout(20):
        tokens = await asyncio.gather(*(token_of(user) for user in users))
    assert len({*tokens, *(each.tokens.access_token for each in made)}) == 6


async def test_an_authorization_server_that_never_ends_its_answer_holds_a_renewal_up_for_a_limited_time(
    settings: Settings, monkeypatch: pytest.MonkeyPatch, server: str
) -> None:
    async def endless(*_old: object, **_options: object) -> None:
        await asyncio.Event().wait()

    monkeypatch.setattr(bearer_auth, "renewed", endless)
    monkeypatch.setattr(bearer_auth, "RENEW_SECONDS", 0.1)
    signed = SignIns(settings, SYSTEM_CLOCK)
    await sign_in(server, signed)
    auth = SignIns(settings, FakeClock(SYSTEM_CLOCK.time() + 86_400)).auth(spec_of(server))
    assert auth is not None
    with pytest.raises(TokenNotRenewed):
        async with asyncio.timeout(20):
            await anext(auth.async_auth_flow(httpx2.Request("POST", f"{server}/mcp")))
