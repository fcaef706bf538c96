"""When tokens are renewed, by a clock that the test moves: ahead of their end, and with clocks that are wrong."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import httpx2
import pytest

from pegboard.clock import SYSTEM_CLOCK
from pegboard.settings import Settings
from pegboard.settings.server_spec import ServerSpec
from pegboard.testing import FakeClock
from pegboard.upstreams.oauth.bearer_auth import AHEAD
from pegboard.upstreams.oauth.challenges import UNAUTHORIZED
from pegboard.upstreams.oauth.first_requests import introduction
from pegboard.upstreams.oauth.sign_ins import SignIns
from processes import listening
from signers import SIGNED, Signer, control

pytestmark = pytest.mark.requirement("023.renewal")

LIFETIME = 3600.0
DAY = 86_400.0


@pytest.fixture
def server() -> Iterator[str]:
    with listening(SIGNED) as url:
        yield url


async def signed_in(url: str, settings: Settings, clock: FakeClock) -> httpx2.Auth:
    sign_ins, spec = SignIns(settings, clock), ServerSpec(name="signed", url=f"{url}/mcp")
    await sign_ins.sign_in(spec, Signer().person())
    auth = sign_ins.auth(spec)
    assert auth is not None
    return auth


async def asked(url: str, auth: httpx2.Auth) -> tuple[bool, Any]:
    """Whether the server takes the token of a request, and how often a token was renewed until then."""
    async with httpx2.AsyncClient(auth=auth, timeout=60) as client:
        response = await client.send(introduction(f"{url}/mcp"))
    return response.status_code != UNAUTHORIZED, (await control(url))["asked"].get("refresh", 0)


async def test_a_token_is_renewed_shortly_before_its_end_and_not_earlier(server: str, settings: Settings) -> None:
    clock = FakeClock(SYSTEM_CLOCK.time())
    auth = await signed_in(server, settings, clock)

    assert await asked(server, auth) == (True, 0)
    clock.advance(LIFETIME - AHEAD - 1)
    assert await asked(server, auth) == (True, 0)
    clock.advance(2)
    assert await asked(server, auth) == (True, 1)
    clock.advance(LIFETIME - AHEAD - 1)
    assert await asked(server, auth) == (True, 1)


async def test_a_token_that_ends_sooner_than_that_is_renewed_after_half_its_time(
    server: str, settings: Settings
) -> None:
    await control(server, lifetime=40)
    clock = FakeClock(SYSTEM_CLOCK.time())
    auth = await signed_in(server, settings, clock)

    clock.advance(19)
    assert await asked(server, auth) == (True, 0)
    clock.advance(2)
    assert await asked(server, auth) == (True, 1)


@pytest.mark.parametrize("skew", [-DAY, -300.0, 300.0, DAY])
async def test_a_clock_that_differs_from_the_servers_renews_nothing_too_early(
    server: str, settings: Settings, skew: float
) -> None:
    clock = FakeClock(SYSTEM_CLOCK.time() + skew)
    auth = await signed_in(server, settings, clock)

    assert await asked(server, auth) == (True, 0)
    clock.advance(LIFETIME - AHEAD + 1)
    assert await asked(server, auth) == (True, 1)


@pytest.mark.parametrize("jump", [-DAY, DAY])
async def test_a_clock_that_is_set_after_the_sign_in_costs_one_renewal_at_most(
    server: str, settings: Settings, jump: float
) -> None:
    clock = FakeClock(SYSTEM_CLOCK.time())
    auth = await signed_in(server, settings, clock)
    clock.advance(jump)
    await control(server, forget_access=True)

    assert await asked(server, auth) == (True, 1)
    assert await asked(server, auth) == (True, 1)
