"""Tokens of an authorization server at the MCP door: challenges, metadata, rights by claims, and whose sessions are
whose."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager
from datetime import UTC, datetime, timedelta
from typing import Any

import httpx2
import pytest
from pydantic import ValidationError

from doors import Raw
from issuers import RunningIssuer, running_issuer
from pegboard import Settings
from pegboard.gateways.access_keys import hashed
from pegboard.gateways.mcp.gateway.host import Host
from pegboard.gateways.mcp.transport.auth import Access, Unauthorized
from pegboard.settings.reload_checks import weakened
from pegboard.testing import FakeClock

OpenDoor = Callable[..., AbstractAsyncContextManager[tuple[str, Host]]]

POLICIES = [
    {"claims": {"groups": ["dev", "ops"]}, "tools": ["scripted/echo", "scripted/add"]},
    {"claims": {"realm.roles": ["admin"], "tenant": ["acme"]}, "tools": ["*"], "scopes": ["admin"]},
]
RULES = [{"tools": "scripted/environment", "scope": "admin"}]


@pytest.fixture
async def issuer(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[RunningIssuer]:
    monkeypatch.setattr("pegboard.gateways.issuer.SECONDS", 60.0)  # it shares our event loop
    async with running_issuer() as server:
        yield server


@pytest.fixture
async def http() -> AsyncIterator[httpx2.AsyncClient]:
    async with httpx2.AsyncClient(trust_env=False, timeout=60) as client:
        yield client


@pytest.fixture(params=[False, True], ids=["legacy", "modern"])
def modern(request: pytest.FixtureRequest) -> bool:
    return bool(request.param)


def configured(issuer: RunningIssuer, **more: Any) -> dict[str, Any]:
    table = {"url": issuer.url, "resource": issuer.resource, "policies": POLICIES} | more
    return {"issuer": table, "rules": RULES, "toolsets": {"dig": {"tools": ["*/odd"], "scope": "dig"}}}


async def client_of(http: httpx2.AsyncClient, url: str, token: str, modern: bool) -> Raw:
    raw = Raw(http, url, modern=modern, headers={"authorization": f"Bearer {token}"})
    return raw if modern else await raw.begin()


async def test_a_client_is_led_to_the_issuer(
    open_door: OpenDoor, http: httpx2.AsyncClient, issuer: RunningIssuer
) -> None:
    async with open_door(**configured(issuer)) as (url, _):
        base = url.removesuffix("/mcp")
        for path, resource, scope in (("", issuer.resource, ""), ("/dig", f"{issuer.resource}/dig", ', scope="dig"')):
            answer = await http.post(f"{url}{path}", json={})
            metadata = f"http://127.0.0.1:7332/.well-known/oauth-protected-resource/mcp{path}"
            said = f'Bearer realm="pegboard", resource_metadata="{metadata}"{scope}'
            assert (answer.status_code, answer.headers["www-authenticate"]) == (401, said)
            found = (await http.get(f"{base}/.well-known/oauth-protected-resource/mcp{path}")).json()
            assert (found["resource"], found["authorization_servers"]) == (resource, [issuer.url])
        assert (await http.get(f"{base}/.well-known/oauth-protected-resource")).json()["resource"] == issuer.resource
        assert (await http.get(f"{base}/.well-known/oauth-protected-resource/mcp/none")).status_code == 404

        expired = await http.post(url, json={}, headers={"authorization": f"Bearer {issuer.token(exp=1)}"})
        assert expired.status_code == 401
        assert 'error="invalid_token"' in expired.headers["www-authenticate"]
        lacking = await http.post(f"{url}/dig", json={}, headers={"authorization": f"Bearer {issuer.token()}"})
        assert lacking.status_code == 403
        assert 'error="insufficient_scope", scope="dig", resource_metadata=' in lacking.headers["www-authenticate"]


async def test_without_an_issuer_there_is_no_metadata(open_door: OpenDoor, http: httpx2.AsyncClient) -> None:
    async with open_door() as (url, _):
        answer = await http.get(f"{url.removesuffix('/mcp')}/.well-known/oauth-protected-resource/mcp")
        assert answer.status_code == 404


async def test_claims_permit_what_the_policies_say(
    open_door: OpenDoor, http: httpx2.AsyncClient, issuer: RunningIssuer, modern: bool
) -> None:
    everything = {"realm": {"roles": ["admin"]}, "tenant": "acme"}
    async with open_door(exposure="eager", **configured(issuer)) as (url, _):
        dev = await client_of(http, url, issuer.token(groups=["qa", "dev"]), modern)
        assert set(await dev.names()) == {"echo", "add"}
        assert await dev.call("echo", text="hello") == "hello"
        admin = await client_of(http, url, issuer.token(**everything), modern)
        assert {"echo", "environment", "odd"} <= set(await admin.names())
        for claims in ({}, {"groups": "devops"}, everything | {"tenant": "other"}, {"realm": {"roles": "no"}}):
            nobody = await client_of(http, url, issuer.token(sub="eve", **claims), modern)
            assert await nobody.names() == []
            assert (await nobody.result("tools/call", name="echo", arguments={"text": "x"}))["isError"]


async def test_without_policies_scopes_permit_as_they_do_for_configured_tokens(
    open_door: OpenDoor, http: httpx2.AsyncClient, issuer: RunningIssuer, modern: bool
) -> None:
    more = {"grants": {"dig": ["scripted/odd"]}, "exposure": "eager"}
    async with open_door(**(configured(issuer, policies=[]) | more)) as (url, _):
        client = await client_of(http, url, issuer.token(scope="openid dig"), modern)
        assert await client.names() == ["odd"]
        toolset = await client_of(http, f"{url}/dig", issuer.token(scope="dig"), modern)
        assert await toolset.names() == ["odd"]


async def test_a_session_is_kept_through_a_renewed_token_and_by_nobody_else(
    open_door: OpenDoor, http: httpx2.AsyncClient, issuer: RunningIssuer
) -> None:
    async with open_door(**configured(issuer)) as (url, _):
        client = await client_of(http, url, issuer.token(groups=["dev"]), modern=False)
        renewed = issuer.token(groups=["dev"], jti="renewed")
        client.headers["authorization"] = f"Bearer {renewed}"
        assert await client.call("echo", text="still here") == "still here"
        others = (
            issuer.token(sub="bob", groups=["dev"]),
            issuer.token(groups=["dev"], tenant="acme", realm={"roles": ["admin"]}),
        )
        for other in others:
            headers = {"authorization": f"Bearer {other}", "mcp-session-id": str(client.session)}
            answer = await http.post(url, json={"jsonrpc": "2.0", "id": 1, "method": "tools/list"}, headers=headers)
            assert answer.status_code == 404


async def test_identity_comes_from_the_token_alone(
    open_door: OpenDoor, http: httpx2.AsyncClient, issuer: RunningIssuer, modern: bool
) -> None:
    async with open_door(exposure="eager", **configured(issuer)) as (url, _):
        client = await client_of(http, url, issuer.token(sub="eve"), modern)
        for name in ("x-forwarded-user", "x-user", "x-pegboard-user", "x-groups", "x-forwarded-access-token"):
            client.headers[name] = issuer.token(groups=["dev"])
        assert await client.names() == []
        two = [("authorization", f"Bearer {issuer.token()}"), ("authorization", f"Bearer {issuer.token()}")]
        assert (await http.post(url, json={}, headers=two)).status_code == 400


async def test_many_callers_at_once_get_their_own_lists(
    open_door: OpenDoor, http: httpx2.AsyncClient, issuer: RunningIssuer, modern: bool
) -> None:
    async with open_door(exposure="eager", **configured(issuer)) as (url, _):

        async def seen(number: int) -> bool:
            groups = ["dev"] if number % 2 else ["guests"]
            client = await client_of(http, url, issuer.token(sub=f"user-{number}", groups=groups), modern)
            return (await client.names() == []) == (number % 2 == 0)

        assert all(await asyncio.gather(*(seen(number) for number in range(30))))
    assert issuer.asked["jwks"] == 1


async def test_configured_tokens_stay_beside_those_of_an_issuer(
    open_door: OpenDoor, http: httpx2.AsyncClient, issuer: RunningIssuer, modern: bool
) -> None:
    access = {"robot": {"hash": hashed("pgb_robot"), "tools": ["scripted/echo"]}}
    async with open_door(exposure="eager", access=access, **configured(issuer)) as (url, host):
        assert await (await client_of(http, url, "pgb_robot", modern)).names() == ["echo"]
        assert set(await (await client_of(http, url, issuer.token(groups=["ops"]), modern)).names()) == {"echo", "add"}
        assert host.access.is_token("pgb_robot")
        assert host.access.is_token(issuer.token(exp=1))
        assert not host.access.is_token("sk-provider")


async def test_an_issuer_that_is_away_is_said(open_door: OpenDoor, http: httpx2.AsyncClient) -> None:
    away = RunningIssuer("http://127.0.0.1:9")
    away.add("one")
    async with open_door(**configured(away)) as (url, _):
        answer = await http.post(url, json={}, headers={"authorization": f"Bearer {away.token()}"})
    assert (answer.status_code, answer.json()["error"]) == (503, "issuer_unavailable")


async def test_a_configured_token_expires_and_another_takes_its_place() -> None:
    clock = FakeClock()
    end = datetime.fromtimestamp(clock.time(), UTC) + timedelta(hours=1)
    old = {"hash": hashed("old"), "expires": end.isoformat()}
    access = Access(Settings(access={"ann": old, "ann-2": {"hash": hashed("new")}}), clock=clock)

    async def shown(token: str) -> str:
        holder = await access.holder([(b"authorization", f"Bearer {token}".encode())])
        return holder.name if holder else ""

    assert [await shown("old"), await shown("new")] == ["ann", "ann-2"]
    clock.advance(3600)
    with pytest.raises(Unauthorized):
        await shown("old")
    assert await shown("new") == "ann-2"
    assert access.is_token("old")
    with pytest.raises(ValidationError):
        Settings(access={"ann": old | {"expires": "2030-01-01T00:00:00"}})


def test_a_reload_may_not_open_what_an_issuer_guards() -> None:
    issuer = {"url": "https://a.example", "resource": "https://b.example/mcp", "policies": POLICIES}
    guarded, loose = Settings(issuer=issuer), Settings(issuer=issuer | {"policies": []})
    assert "no token would be required" in weakened(guarded, Settings())
    assert "permit all of them" in weakened(guarded, loose)
    assert not weakened(Settings(), guarded)
