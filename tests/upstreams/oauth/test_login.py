"""Signing in at the MCP SDK's own OAuth server: discovery, registration, consent, and what is kept."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest

from pegboard.clock import SYSTEM_CLOCK
from pegboard.errors import PegboardError
from pegboard.settings import Settings
from pegboard.settings.oauth_settings import OAuthSettings
from pegboard.settings.server_spec import ServerSpec
from pegboard.upstreams.oauth.credentials import CredentialKey, OAuthCredentials
from pegboard.upstreams.oauth.oauth_login import login
from pegboard.upstreams.oauth.sign_ins import SignIns
from pegboard.upstreams.oauth.token_requests import SignInEnded, renewed, revoke
from processes import listening
from signers import SIGNED, Signer, control


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    with listening(SIGNED, '{"scopes": ["read"], "admin": true}') as url:
        yield url


async def signed_in(url: str, signer: Signer | None = None, **options: Any) -> OAuthCredentials:
    key = CredentialKey(server="signed", url=f"{url}/mcp", user=options.pop("user", ""))
    settings = OAuthSettings(**options.pop("settings", {}))
    person = (signer or Signer()).person(options.pop("seconds", 30.0))
    return await login(key, settings, person, now=SYSTEM_CLOCK.time, **options)


@pytest.mark.requirement("023.login")
async def test_an_unknown_client_registers_itself_and_gets_a_token_for_this_server_alone(server: str) -> None:
    signer = Signer()
    made = await signed_in(server, signer)
    asked = parse_qs(urlsplit(signer.pages[0]).query)

    assert made.scopes == ("read",)
    assert made.client.client_name == "Pegboard"
    assert asked["code_challenge_method"] == ["S256"]
    assert asked["resource"] == [f"{server}/mcp"]
    assert asked["redirect_uri"][0].startswith("http://127.0.0.1:")
    assert (await control(server))["resources"][-1] == f"{server}/mcp"
    assert "You are signed in to signed" in signer.seen


async def test_the_next_sign_in_uses_the_same_registration(server: str) -> None:
    first = await signed_in(server)
    registered = (await control(server))["asked"]["register"]
    second = await signed_in(server, before=first)

    assert second.client.client_id == first.client.client_id
    assert (await control(server))["asked"]["register"] == registered


@pytest.mark.requirement("023.login")
async def test_a_server_that_wants_a_token_for_calls_alone_is_signed_in_to_by_its_metadata(settings: Settings) -> None:
    with listening(SIGNED, '{"calls_only": true}') as url:
        spec = ServerSpec(name="signed", url=f"{url}/mcp")
        sign_ins = SignIns(settings, SYSTEM_CLOCK)
        await sign_ins.sign_in(spec, Signer().person())
        made = sign_ins.store.read(CredentialKey(server="signed", url=f"{url}/mcp"))

        assert made is not None
        assert made.tokens.access_token in (await control(url))["tokens"]
        assert (await control(url))["resources"] == [f"{url}/mcp"]


@pytest.mark.requirement("023.step-up")
async def test_the_next_sign_in_asks_for_what_was_wanted_meanwhile_too(server: str) -> None:
    first = await signed_in(server)
    second = await signed_in(server, before=first.model_copy(update={"wanted": ("admin",)}))

    assert set(second.scopes) == {"read", "admin"}
    assert second.client.client_id != first.client.client_id, "the first one is registered for `read` alone"


async def test_who_refuses_consent_is_told_so(server: str) -> None:
    with pytest.raises(PegboardError, match="was refused: access_denied"):
        await signed_in(server, Signer(answer="refuse"))


async def test_who_does_nothing_is_waited_for_only_so_long(server: str) -> None:
    class Absent(Signer):
        async def open(self, url: str) -> None:
            self.pages.append(url)

    with pytest.raises(PegboardError, match=r"Nobody has signed in to 'signed' within 0\.2 s"):
        await signed_in(server, Absent(), seconds=0.2)


async def test_without_a_person_nobody_is_asked_and_the_command_is_named(server: str) -> None:
    key = CredentialKey(server="signed", url=f"{server}/mcp")
    with pytest.raises(PegboardError, match="pegboard login signed"):
        await login(key, OAuthSettings(), None, now=SYSTEM_CLOCK.time)


async def test_a_renewed_token_keeps_its_rights_and_a_used_refresh_token_ends_the_sign_in(server: str) -> None:
    first = await signed_in(server)
    second = await renewed(first, now=SYSTEM_CLOCK.time())

    assert second.tokens.access_token != first.tokens.access_token
    assert second.scopes == first.scopes
    with pytest.raises(SignInEnded):
        await renewed(first, now=SYSTEM_CLOCK.time())


@pytest.mark.requirement("023.login")
async def test_revoked_tokens_are_gone_at_the_server(server: str) -> None:
    made = await signed_in(server)
    assert made.tokens.access_token in (await control(server))["tokens"]

    assert await revoke(made)
    left = (await control(server))["tokens"]
    assert not {made.tokens.access_token, made.tokens.refresh_token} & set(left)
