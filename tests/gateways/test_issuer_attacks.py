"""Tokens that somebody made to get in, or to make the gateway ask, wait or fail."""

from __future__ import annotations

import base64
import json
from collections.abc import AsyncIterator
from typing import Any

import jwt
import pytest
from jwt.algorithms import ECAlgorithm

from issuers import RunningIssuer, new_key, running_issuer
from pegboard.clock import SystemClock
from pegboard.gateways.issuer import Issuer, TokenRefused
from pegboard.settings.issuer_settings import IssuerSettings

SECRET = b"a secret that everybody knows, as it stands among the public keys"


@pytest.fixture
async def server(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[RunningIssuer]:
    monkeypatch.setattr("pegboard.gateways.issuer.SECONDS", 60.0)  # it shares our event loop
    async with running_issuer() as issuer:
        yield issuer


@pytest.fixture
def issuer(server: RunningIssuer) -> Issuer:
    return Issuer(IssuerSettings(url=server.url, resource=server.resource), SystemClock())


def encoded(value: bytes) -> str:
    return base64.urlsafe_b64encode(value).decode().rstrip("=")


async def refused(issuer: Issuer, token: str) -> str:
    with pytest.raises(TokenRefused) as caught:
        await issuer.claims(token)
    return str(caught.value)


@pytest.mark.requirement("signing-in.forged-tokens")
async def test_a_key_that_a_token_brings_or_points_to_is_neither_used_nor_fetched(
    server: RunningIssuer, issuer: Issuer
) -> None:
    own = new_key("ES256")
    jwk = json.loads(ECAlgorithm.to_jwk(own.public_key()))
    for head in (
        {"jwk": jwk},
        {"jku": f"{server.url}/stolen"},
        {"x5u": f"{server.url}/stolen"},
        {"x5c": [encoded(b"cert")]},
    ):
        assert await refused(issuer, server.token(key=own, header=head)) == "its signature or its claims are wrong"

    assert server.asked == {"metadata": 1, "jwks": 1}


@pytest.mark.requirement("signing-in.forged-tokens")
async def test_a_shared_secret_among_the_keys_of_the_issuer_verifies_nothing(
    server: RunningIssuer, issuer: Issuer, monkeypatch: pytest.MonkeyPatch
) -> None:
    shared = {"kty": "oct", "k": encoded(SECRET), "kid": "shared", "alg": "HS256"}
    whole = server.jwks()
    monkeypatch.setattr(server, "jwks", lambda: {"keys": [shared, *whole["keys"]]})
    claims = jwt.decode(server.token(), options={"verify_signature": False})

    forged = jwt.encode(claims, SECRET, "HS256", headers={"kid": "shared"})
    assert await refused(issuer, forged) == "its algorithm is not accepted"
    relabelled = server.token(header={"kid": "shared"})
    assert await refused(issuer, relabelled) == "its key is unknown"


@pytest.mark.parametrize("kid", [["one"], {"a": 1}, 7, "../../one", "one\0", "x" * 5_000])
async def test_a_key_id_of_any_kind_is_no_failure(server: RunningIssuer, issuer: Issuer, kid: Any) -> None:
    head = encoded(json.dumps({"alg": "ES256", "kid": kid}).encode())
    _, body, signature = server.token().split(".")

    assert await refused(issuer, f"{head}.{body}.{signature}") in ("it cannot be read", "its key is unknown")


@pytest.mark.requirement("signing-in.forged-tokens")
@pytest.mark.parametrize("place", ["header", "claims"])
@pytest.mark.parametrize("nested", ["[" * 6_000, '{"a":' * 2_000, "[" * 5_000 + "]" * 5_000])
async def test_a_token_nested_too_deep_to_parse_is_refused(
    server: RunningIssuer, issuer: Issuer, place: str, nested: str
) -> None:
    head, body, signature = server.token().split(".")
    deep = encoded(nested.encode())
    token = f"{deep}.{body}.{signature}" if place == "header" else f"{head}.{deep}.{signature}"

    assert await refused(issuer, token)
    assert not issuer.issued(token)


@pytest.mark.parametrize(
    "broken", ["..", "a.b.c", "é.é.é", ".".join([encoded(b"[]")] * 3), encoded(b"null") + ".e30.x"]
)
async def test_what_only_looks_like_a_token_is_refused(issuer: Issuer, broken: str) -> None:
    assert await refused(issuer, broken)
    assert not issuer.issued(broken)


@pytest.mark.parametrize("sub", [7, ["ann"], {"name": "ann"}, ""])
async def test_a_subject_that_is_no_name_is_nobody(server: RunningIssuer, issuer: Issuer, sub: Any) -> None:
    signed = jwt.encode(
        {"iss": server.url, "aud": server.resource, "exp": 9_999_999_999, "sub": sub},
        server.keys["one"][1],
        "ES256",
        headers={"kid": "one"},
    )
    assert await refused(issuer, signed)
