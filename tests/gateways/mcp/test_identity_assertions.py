"""Enterprise-managed authorization: the identity provider vouches for a caller (ID-JAG), and the server's own
authorization server gives a token for that; both are Authlib's, in processes of their own."""

from __future__ import annotations

import json
import logging
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
from typing import Any

import httpx2
import jwt
import pytest

from doors import Raw, until_listed
from pegboard.gateways.mcp.gateway.host import Host
from pegboard.settings.server_spec import ServerSpec
from processes import listening
from signers import AUTHORIZATION, RESOURCE, control

pytestmark = pytest.mark.requirement("023.assertions")

OpenDoor = Callable[..., AbstractAsyncContextManager[tuple[str, Host]]]

JWT_BEARER = "urn:ietf:params:oauth:grant-type:jwt-bearer"
AT_PROVIDER, AT_SERVER = "secret-at-the-provider", "secret-at-the-server"


@pytest.fixture(scope="module")
def provider() -> Iterator[str]:
    """The identity provider, whose client `gateway` is called `pegboard` at the server's authorization server."""
    options = {"clients": {"gateway": AT_PROVIDER}, "client_ids": {"gateway": "pegboard"}, "denied": ["mallory"]}
    with listening(AUTHORIZATION, json.dumps(options)) as url:
        yield url


@pytest.fixture(scope="module")
def issuer(provider: str) -> Iterator[str]:
    with listening(AUTHORIZATION, json.dumps({"clients": {"pegboard": AT_SERVER}, "trusts": provider})) as url:
        yield url


@pytest.fixture(scope="module")
def personal(issuer: str) -> Iterator[str]:
    with listening(RESOURCE, json.dumps({"issuer": issuer, "personal": True})) as url:
        yield url


@dataclass
class Enterprise:
    http: httpx2.AsyncClient
    url: str
    provider: str

    async def client(self, user: str, *, listed: bool = True) -> Raw:
        said = await control(self.provider, id_token={"user": user, "client": "gateway"})
        raw = Raw(self.http, self.url, modern=True, headers={"authorization": f"Bearer {said['id_tokens'][-1]}"})
        if listed:
            await until_listed(raw, user)
        return raw


@pytest.fixture
def opened(
    open_door: OpenDoor, provider: str, issuer: str, personal: str
) -> Callable[..., AbstractAsyncContextManager[Enterprise]]:
    @asynccontextmanager
    async def enterprise(url: str = personal, **changes: Any) -> AsyncIterator[Enterprise]:
        oauth = {"grant": "id_jag", "token_endpoint": f"{provider}/token", "issuer": issuer}
        oauth |= {"client_id": "gateway", "client_secret": AT_PROVIDER}
        oauth |= {"issuer_client_id": "pegboard", "issuer_client_secret": AT_SERVER, "scopes": "read"}
        entry = {"name": "personal", "url": f"{url}/mcp", "per_user": True, "oauth": oauth | changes}
        # callers present ID tokens, which are for the client at the provider
        trusted = {"url": provider, "resource": "http://127.0.0.1:7332/mcp", "audiences": ["gateway"]}
        trusted |= {"jwks_uri": f"{provider}/jwks"}
        spec = ServerSpec.model_validate(entry)
        async with (
            httpx2.AsyncClient(trust_env=False, timeout=60) as http,
            open_door(spec, issuer=trusted, exposure="eager") as (door, _),
        ):
            yield Enterprise(http, door, provider)

    return enterprise


async def test_nobody_signs_in_and_each_caller_is_themselves(
    opened: Any, provider: str, issuer: str, personal: str, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.DEBUG, "pegboard"):
        async with opened() as enterprise:
            for user in ("ann", "bob"):
                client = await enterprise.client(user)
                assert await client.call("whose") == user
                assert f"diary_of_{user}" in await client.names()
    exchange = (await control(provider))["forms"][0]
    assert exchange["requested_token_type"] == "urn:ietf:params:oauth:token-type:id-jag"
    assert exchange["subject_token_type"] == "urn:ietf:params:oauth:token-type:id_token"
    assert (exchange["audience"], exchange["resource"]) == (issuer, f"{personal}/mcp")
    forms = (await control(issuer))["forms"]
    assert [each["grant_type"] for each in forms] == [JWT_BEARER, JWT_BEARER]
    assert not [form for form in forms if "client_secret" in form or AT_PROVIDER in str(form)]
    claims = [jwt.decode(form["assertion"], options={"verify_signature": False}) for form in forms]
    assert [each["sub"] for each in claims] == ["ann", "bob"]
    assert {each["client_id"] for each in claims} == {"pegboard"}
    secret = [AT_PROVIDER, AT_SERVER, exchange["subject_token"], *(form["assertion"] for form in forms)]
    assert not [each for each in secret if each in caplog.text]


@pytest.mark.requirement("023.step-up")
async def test_an_assertion_with_more_scopes_is_got_once_when_the_server_asks_for_them(
    opened: Any, provider: str, issuer: str
) -> None:
    before = len((await control(provider))["forms"]), len((await control(issuer))["forms"])
    with listening(RESOURCE, json.dumps({"issuer": issuer, "personal": True, "needs": {"add_page": "write"}})) as url:
        async with opened(url=url) as enterprise:
            client = await enterprise.client("ann")
            assert [await client.call(name) for name in ("whose", "add_page", "add_page")] == ["ann"] * 3
    for at, server in zip(before, (provider, issuer), strict=True):
        assert [each["scope"] for each in (await control(server))["forms"][at:]] == ["read", "read write"]


async def test_whom_the_providers_policy_keeps_out_gets_no_token(opened: Any, issuer: str) -> None:
    before = len((await control(issuer))["forms"])
    async with opened() as enterprise:
        client = await enterprise.client("mallory", listed=False)
        said = await client.result("tools/call", name="sign_in", arguments={})
        assert said["isError"]
        assert "a current token of the issuer" in said["content"][0]["text"]
        assert not [name for name in await client.names() if "diary" in name]
    assert len((await control(issuer))["forms"]) == before


@pytest.mark.parametrize(
    "answer", [{"issued_token_type": "urn:ietf:params:oauth:token-type:access_token"}, {"access_token": ""}]
)
async def test_an_answer_that_is_no_assertion_goes_to_nobody(
    opened: Any, provider: str, issuer: str, answer: dict[str, str], caplog: pytest.LogCaptureFixture
) -> None:
    before = len((await control(issuer))["forms"])
    await control(provider, exchanged=answer)
    try:
        async with opened() as enterprise:
            client = await enterprise.client("ann", listed=False)
            assert (await client.result("tools/call", name="sign_in", arguments={}))["isError"]
    finally:
        await control(provider, exchanged={})
    assert "the identity provider's answer has no assertion" in caplog.text
    assert len((await control(issuer))["forms"]) == before


@pytest.mark.parametrize("wrong", ["issuer", "token_endpoint"])
async def test_metadata_that_name_another_server_get_neither_assertion_nor_secret(
    opened: Any, provider: str, issuer: str, wrong: str
) -> None:
    """Mix-up: the assertion would let the other one act as the user."""
    other = {"issuer": provider, "token_endpoint": f"{provider}/token"}[wrong]
    before = len((await control(issuer))["forms"]), (await control(provider))["asked"].get(JWT_BEARER, 0)
    await control(issuer, metadata={wrong: other})
    try:
        async with opened() as enterprise:
            client = await enterprise.client("ann", listed=False)
            assert (await client.result("tools/call", name="sign_in", arguments={}))["isError"]
    finally:
        await control(issuer, metadata={})
    assert (len((await control(issuer))["forms"]), (await control(provider))["asked"].get(JWT_BEARER, 0)) == before


def test_an_entry_says_both_clients() -> None:
    oauth = {"grant": "id_jag", "token_endpoint": "https://idp.example/token", "client_id": "a", "client_secret": "b"}
    with pytest.raises(
        ValueError, match="id_jag needs client_id, client_secret, token_endpoint, issuer and issuer_cli"
    ):
        ServerSpec.model_validate({"name": "s", "url": "https://s.example", "per_user": True, "oauth": oauth})
    whole = oauth | {
        "issuer": "https://login.example",
        "issuer_client_id": "c",
        "issuer_client_secret": "${JAG_SECRET}",
    }
    with pytest.raises(ValueError, match="id_jag needs per_user"):
        ServerSpec.model_validate({"name": "s", "url": "https://s.example", "oauth": whole})
    spec = ServerSpec.model_validate({"name": "s", "url": "https://s.example", "per_user": True, "oauth": whole})
    known = {"JAG_SECRET": "secret-from-a-variable"}
    assert spec.expanded(known).oauth is not None
    assert spec.expanded(known).oauth.issuer_client_secret == "secret-from-a-variable"  # type: ignore[union-attr]
    assert "secret-from-a-variable" in spec.secrets(known)
    assert "secret-from-a-variable" not in repr(spec.expanded(known))
