"""Tokens of an authorization server: what is accepted, what is refused, and how often the issuer is asked."""

from __future__ import annotations

import asyncio
import base64
import hmac
import json
import logging
import time
from collections.abc import AsyncIterator
from typing import Any

import pytest
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from pydantic import ValidationError

from issuers import RunningIssuer, new_key, running_issuer
from pegboard.gateways.issuer import PAUSE, RETRY, Issuer, IssuerUnavailable, TokenRefused
from pegboard.settings.issuer_settings import IssuerSettings
from pegboard.testing import FakeClock


@pytest.fixture
async def server(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[RunningIssuer]:
    monkeypatch.setattr("pegboard.gateways.issuer.SECONDS", 60.0)  # it shares our event loop
    async with running_issuer() as issuer:
        yield issuer


def of(server: RunningIssuer, clock: FakeClock | None = None, **more: Any) -> Issuer:
    settings = {"url": server.url, "resource": server.resource} | more
    clock = clock or FakeClock()
    clock.time = time.time  # type: ignore[method-assign]  # tokens have dates
    return Issuer(IssuerSettings.model_validate(settings), clock)


async def refused(issuer: Issuer, token: str) -> str:
    with pytest.raises(TokenRefused) as caught:
        await issuer.claims(token)
    assert token not in str(caught.value)
    return str(caught.value)


@pytest.mark.parametrize("algorithm", ["RS256", "PS256", "ES256", "EdDSA"])
@pytest.mark.parametrize("path", ["", "/realms/team"])
async def test_a_signed_token_is_accepted_with_keys_that_discovery_found(algorithm: str, path: str) -> None:
    async with running_issuer(path) as server:
        server.add("two", algorithm)
        issuer = of(server)
        for _ in range(3):
            claims = await issuer.claims(server.token("two", sub="bob", groups=["dev"]))

        assert (claims["sub"], claims["groups"]) == ("bob", ["dev"])
        assert server.asked == {"metadata": 1, "jwks": 1}


@pytest.mark.parametrize(
    ("changed", "why"),
    [
        ({"aud": "https://other.example/mcp"}, "another resource"),
        ({"aud": None}, "lacks a claim"),
        ({"aud": ["https://a.example", "http://127.0.0.1:7332/mcpx"]}, "another resource"),
        ({"iss": "https://other.example"}, "another issuer"),
        ({"exp": 1}, "expired"),
        ({"exp": None}, "lacks a claim"),
        ({"sub": None}, "lacks a claim"),
        ({"nbf": 9_999_999_999}, "not valid yet"),
    ],
)
async def test_a_token_for_others_or_another_time_is_refused(
    server: RunningIssuer, changed: dict[str, Any], why: str
) -> None:
    assert why in await refused(of(server), server.token(**changed))


@pytest.mark.parametrize(
    "aud", ["http://127.0.0.1:7332/mcp", "http://127.0.0.1:7332/mcp/", ["x", "http://127.0.0.1:7332/mcp/dev"], "api"]
)
async def test_a_token_for_this_gateway_or_a_toolset_of_it_is_accepted(server: RunningIssuer, aud: Any) -> None:
    assert (await of(server, audiences=["api"]).claims(server.token(aud=aud)))["aud"] == aud


async def test_clocks_may_differ_by_the_leeway(server: RunningIssuer) -> None:
    just_over = server.token(exp=int(time.time()) - 30)
    assert (await of(server).claims(just_over))["sub"] == "ann"
    assert "expired" in await refused(of(server, leeway=0), just_over)


async def test_a_token_without_a_signature_or_with_anothers_is_refused(server: RunningIssuer) -> None:
    issuer, good = of(server), server.token()
    head, body, _ = good.split(".")
    none = base64.urlsafe_b64encode(json.dumps({"alg": "none", "kid": "one"}).encode()).decode().rstrip("=")
    for forged in (f"{none}.{body}.", f"{head}.{body}.", f"{head}.{body}.AAAA", server.token(key=new_key("ES256"))):
        await refused(issuer, forged)
    changed = base64.urlsafe_b64encode(b'{"sub":"root"}').decode().rstrip("=")
    await refused(issuer, f"{head}.{changed}.{good.split('.')[2]}")


async def test_the_public_key_is_no_shared_secret(server: RunningIssuer) -> None:
    server.add("rsa", "RS256")
    public = server.keys["rsa"][1].public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
    head = base64.urlsafe_b64encode(b'{"alg":"HS256","kid":"rsa"}').decode().rstrip("=")
    signed = f"{head}.{server.token('rsa').split('.')[1]}"
    code = base64.urlsafe_b64encode(hmac.digest(public, signed.encode(), "sha256")).decode().rstrip("=")
    assert "algorithm" in await refused(of(server), f"{signed}.{code}")
    with pytest.raises(ValidationError):
        of(server, algorithms=["HS256"])


async def test_a_key_is_used_with_its_own_algorithm_only(server: RunningIssuer) -> None:
    server.add("rsa", "RS256")
    assert "algorithm" in await refused(of(server), server.token("rsa", algorithm="PS256"))
    assert "algorithm" in await refused(of(server, algorithms=["ES256"]), server.token("rsa"))
    assert "algorithm" in await refused(of(server), server.token(header={"crit": ["b64"], "b64": False}))


async def test_a_new_key_is_found_and_made_up_ones_cost_no_requests(server: RunningIssuer) -> None:
    clock = FakeClock()
    issuer = of(server, clock)
    await issuer.claims(server.token())
    server.add("two")
    clock.advance(PAUSE + 1)
    assert (await issuer.claims(server.token("two")))["sub"] == "ann"

    for made_up in range(50):
        await refused(issuer, server.token("two", header={"kid": f"made-up-{made_up}"}))
    assert server.asked["jwks"] == 2


async def test_a_withdrawn_key_is_forgotten(server: RunningIssuer) -> None:
    clock = FakeClock()
    issuer = of(server, clock)
    await issuer.claims(server.token())
    old = server.token(sub="bob")
    server.add("two")
    key = server.keys.pop("one")
    assert key
    clock.advance(601)
    assert "unknown" in await refused(issuer, old)


async def test_keys_that_rotate_under_load_refuse_nobody(server: RunningIssuer) -> None:
    clock = FakeClock()
    issuer = of(server, clock)
    for turn in range(5):
        server.add(f"turn-{turn}")
        clock.advance(PAUSE + 1)
        tokens = [server.token(f"turn-{turn}", sub=f"user-{each}") for each in range(40)]
        found = await asyncio.gather(*(issuer.claims(token) for token in tokens))
        assert [each["sub"] for each in found] == [f"user-{each}" for each in range(40)]
    assert server.asked["jwks"] == 5


async def test_an_issuer_that_is_slow_or_away_delays_nobody_whose_token_is_known(
    server: RunningIssuer, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("pegboard.gateways.issuer.SECONDS", 0.3)
    clock = FakeClock()
    issuer, known = of(server, clock), server.token()
    server.delay = 5.0
    began = time.monotonic()
    tried = await asyncio.gather(*(issuer.claims(server.token(sub=f"{n}")) for n in range(20)), return_exceptions=True)
    assert {type(each) for each in tried} == {IssuerUnavailable}
    assert time.monotonic() - began < 3
    assert server.asked["jwks"] <= 1, "one question for all; it may be given up before the issuer reads it"

    monkeypatch.setattr("pegboard.gateways.issuer.SECONDS", 30.0)
    server.delay = 0
    clock.advance(RETRY + 1)
    await issuer.claims(known)
    server.delay = 20.0
    clock.advance(700)
    began = time.monotonic()
    await issuer.claims(known)
    assert time.monotonic() - began < 10
    assert (await issuer.claims(server.token(sub="bob")))["sub"] == "bob"  # with the keys as they were
    assert known not in caplog.text


@pytest.mark.parametrize(
    "metadata", [{"issuer": "https://other.example"}, {"jwks_uri": "http://169.254.169.254/jwks"}, {"jwks_uri": 7}]
)
async def test_metadata_of_another_issuer_or_that_leads_elsewhere_is_not_used(
    server: RunningIssuer, metadata: dict[str, Any]
) -> None:
    server.metadata = metadata
    with pytest.raises(IssuerUnavailable):
        await of(server).claims(server.token())
    assert server.asked["jwks"] == 0


async def test_a_token_that_is_no_jwt_is_introspected_once_a_minute(
    server: RunningIssuer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ISSUER_SECRET", "s3cret")
    more = {"introspection_uri": f"{server.url}/introspect", "client_id": "peg", "client_secret_env": "ISSUER_SECRET"}
    issuer = of(server, **more)
    server.opaque = {
        "good": {"active": True, "sub": "ann", "aud": server.resource, "scope": "dig"},
        "foreign": {"active": True, "sub": "ann", "aud": "https://other.example"},
        "unowned": {"active": True, "aud": server.resource},
    }

    for _ in range(3):
        assert (await issuer.claims("good"))["scope"] == "dig"
    assert server.asked["introspect"] == 1
    assert "another resource" in await refused(issuer, "foreign")
    for token in ("unowned", "made-up"):
        await refused(issuer, token)
    assert "no JWT" in await refused(of(server), "good")


@pytest.mark.parametrize("end", [None, 10**400, "4102444800"])
async def test_an_introspected_token_without_an_end_or_with_one_far_away_is_asked_about_again(
    server: RunningIssuer, monkeypatch: pytest.MonkeyPatch, end: int | None
) -> None:
    issuer = introspecting(server, monkeypatch, {"exp": end})
    for _ in range(2):
        assert (await issuer.claims("opaque"))["sub"] == "ann"
    assert server.asked["introspect"] == 1


@pytest.mark.parametrize("end", ["tomorrow", "1", True, {}, [], -1, -(10**400)])
async def test_an_introspected_token_whose_end_is_no_time_or_past_is_refused(
    server: RunningIssuer, monkeypatch: pytest.MonkeyPatch, end: Any
) -> None:
    why = await refused(introspecting(server, monkeypatch, {"exp": end}), "opaque")
    assert ("expired" if end in ("1", -1, -(10**400)) else "cannot be read") in why


def introspecting(server: RunningIssuer, monkeypatch: pytest.MonkeyPatch, more: dict[str, Any]) -> Issuer:
    """An issuer that says so of the token ``opaque``."""
    monkeypatch.setenv("ISSUER_SECRET", "s3cret")
    server.opaque = {"opaque": {"active": True, "sub": "ann", "aud": server.resource} | more}
    return of(
        server,
        introspection_uri=f"{server.url}/introspect",
        client_id="peg",
        client_secret_env="ISSUER_SECRET",
    )


async def test_memory_is_bounded_and_what_is_no_token_is_refused(
    server: RunningIssuer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pegboard.gateways.issuer.MOST_TOKENS", 5)
    issuer = of(server)
    for number in range(20):
        await issuer.claims(server.token(sub=f"user-{number}"))
    assert len(issuer._known) == 5
    for token in ("a.b.c", "x" * 20_000, "ü.ü.ü", "a.b"):
        await refused(issuer, token)


@pytest.mark.parametrize(
    "changed",
    [
        {"url": "http://issuer.example"},
        {"resource": "http://gateway.example/mcp"},
        {"jwks_uri": "http://10.0.0.1/jwks"},
        {"url": "https://user:pass@issuer.example"},
        {"introspection_uri": "https://issuer.example/introspect"},
    ],
)
def test_addresses_without_tls_and_half_a_configuration_are_refused(changed: dict[str, Any]) -> None:
    good = {"url": "https://issuer.example", "resource": "https://gateway.example/mcp"}
    IssuerSettings.model_validate(good)
    with pytest.raises(ValidationError):
        IssuerSettings.model_validate(good | changed)


def test_the_issuers_own_tokens_are_told(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    server = RunningIssuer("https://issuer.example")
    server.add("one")
    issuer = Issuer(IssuerSettings(url="https://issuer.example", resource="https://gateway.example/mcp"), FakeClock())
    assert issuer.issued(server.token())
    for other in (server.token(iss="https://other.example"), "sk-123", "a.b.c"):
        assert not issuer.issued(other)
