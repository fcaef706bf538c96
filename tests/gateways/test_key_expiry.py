from __future__ import annotations

import asyncio
import logging
from datetime import UTC, datetime

import pytest
from pydantic import ValidationError

from pegboard import Settings
from pegboard.gateways.access_keys import hashed
from pegboard.gateways.key_expiry import ending, warn_of_expiry
from pegboard.gateways.llm.proxy.keys import Keys, NotAllowed
from pegboard.gateways.mcp.transport.auth import Access
from pegboard.settings.llm import KeySettings
from pegboard.settings.reload_checks import weakened
from pegboard.testing import FakeClock

DAY = 86_400.0


def at(clock: FakeClock, days: float) -> datetime:
    return datetime.fromtimestamp(clock.time() + days * DAY, UTC)


@pytest.fixture
def settings(clock: FakeClock) -> Settings:
    keys = {
        "team": {"hash": hashed("new"), "previous": hashed("old"), "previous_expires": at(clock, 2)},
        "brief": {"hash": hashed("brief"), "expires": at(clock, 5)},
    }
    access = {"ann": {"hash": hashed("anns"), "expires": at(clock, 30)}}
    return Settings(llm={"upstreams": {}, "keys": keys}, access=access)


def bearer(key: str) -> list[tuple[bytes, bytes]]:
    return [(b"authorization", f"Bearer {key}".encode())]


@pytest.mark.requirement("signing-in.rotation")
def test_a_key_for_models_is_refused_from_its_end_on_and_goes_to_no_provider(
    settings: Settings, clock: FakeClock
) -> None:
    keys = Keys(settings.llm.keys, clock=clock)

    assert keys.holder(bearer("old")) == keys.holder(bearer("new")) == "team"
    clock.advance(2 * DAY)
    assert keys.holder(bearer("new")) == "team"
    with pytest.raises(NotAllowed, match="The key has expired"):
        keys.holder(bearer("old"))
    assert keys.is_ours("old")
    assert keys.none_of_ours(bearer("old")) == []


@pytest.mark.requirement("signing-in.rotation")
def test_two_tokens_of_one_holder_are_valid_at_once_and_share_their_sessions(clock: FakeClock) -> None:
    table = {"hash": hashed("new"), "previous": hashed("old"), "previous_expires": at(clock, 2), "scopes": ["dba"]}
    access = Access(Settings(access={"ann": table}), clock=clock)

    old, new = access.holder_of("old"), access.holder_of("new")
    assert old is not None
    assert new is not None
    assert old.identity == new.identity
    clock.advance(2 * DAY)
    assert access.holder_of("old") is None
    assert access.holder_of("new") == new
    assert access.is_token("old")


@pytest.mark.requirement("signing-in.rotation")
async def test_keys_that_end_soon_are_said_ahead(
    settings: Settings, clock: FakeClock, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.WARNING)
    said = asyncio.create_task(warn_of_expiry(lambda: settings, clock))
    await asyncio.sleep(0)
    said.cancel()

    assert [each.name for each in ending(settings, clock.time())] == ["brief"]
    (record,) = caplog.records
    assert record.message.startswith("The key [llm.keys.brief] ends at ")
    assert record.message.endswith("`pegboard keys rotate brief` makes its successor.")
    clock.advance(20 * DAY)
    now = clock.time()
    assert [each.sentence(now).split(" at ")[0] for each in ending(settings, now)] == [
        "The key [access.ann] ends",
        "The key [llm.keys.brief] has ended",
    ]


def test_a_previous_key_needs_an_end() -> None:
    with pytest.raises(ValidationError, match="previous and previous_expires belong together"):
        KeySettings(hash=hashed("a"), previous=hashed("b"))


def test_a_reload_that_would_make_a_key_last_for_ever_is_refused(settings: Settings) -> None:
    table = settings.model_copy(update={"access": {"ann": settings.access["ann"].model_copy(update={"expires": None})}})

    assert weakened(settings, table) == "a key that ends would be valid for ever (expires)"
    assert weakened(settings, settings) == ""
