"""Every way to sign in, at an authorization server of another make, apart from the MCP server."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from pegboard.errors import PegboardError
from pegboard.upstreams.oauth.token_requests import SignInEnded, renewed, revoke
from signers import Signer, control

Started = Callable[..., str]
SignedIn = Callable[..., Any]


@pytest.mark.requirement("023.grants", "023.browser")
@pytest.mark.parametrize("oidc", [False, True], ids=["rfc8414", "oidc"])
@pytest.mark.parametrize("path", ["", "/tenant/one"], ids=["root", "path"])
async def test_discovery_finds_the_server_and_a_token_is_got_renewed_and_revoked(
    authorization: Started, resource: Started, signed_in: SignedIn, oidc: bool, path: str
) -> None:
    at = authorization(oidc=oidc, path=path)
    url = resource(f"{at}{path}")
    made = await signed_in(url)
    said = await control(at)
    assert said["resources"] == [f"{url}/mcp"]
    assert said["asked"]["register"] == 1
    assert str(made.metadata.issuer) == f"{at}{path}"

    again = await renewed(made, now=made.obtained_at)
    assert again.tokens.refresh_token != made.tokens.refresh_token
    assert await revoke(again)
    assert (await control(at))["tokens"] == []
    with pytest.raises(SignInEnded, match="has ended or was revoked"):
        await renewed(again, now=made.obtained_at)


@pytest.mark.requirement("023.grants")
async def test_a_metadata_document_names_the_client_where_the_server_takes_one(
    authorization: Started, resource: Started, signed_in: SignedIn
) -> None:
    document = {"client_name": "Pegboard", "token_endpoint_auth_method": "none"}
    at = authorization(cimd=document)
    made = await signed_in(resource(at), client_metadata_url="https://pegboard.example/client.json")
    asked = (await control(at))["asked"]

    assert made.client.client_id == "https://pegboard.example/client.json"
    assert asked["cimd"] == 1
    assert "register" not in asked


@pytest.mark.requirement("023.grants")
@pytest.mark.parametrize("method", ["client_secret_basic", "client_secret_post"])
async def test_a_configured_client_shows_its_secret_as_the_server_wants_it(
    authorization: Started, resource: Started, signed_in: SignedIn, method: str
) -> None:
    at = authorization(
        clients={"ours": "its-secret"},
        authentication=method,
        metadata={"token_endpoint_auth_methods_supported": [method], "registration_endpoint": None},
    )
    made = await signed_in(resource(at), client_id="ours", client_secret="its-secret", issuer=at)

    assert made.client.client_id == "ours"
    assert "register" not in (await control(at))["asked"]
    assert (await renewed(made, now=made.obtained_at)).tokens.access_token != made.tokens.access_token


@pytest.mark.requirement("023.grants")
async def test_a_device_flow_waits_as_long_as_the_server_says_and_needs_no_browser(
    authorization: Started, resource: Started, signed_in: SignedIn
) -> None:
    at = authorization(slow=True)
    signer = Signer()
    made = await signed_in(resource(at), signer, grant="device_code")
    [(page, code)] = signer.codes

    assert page.startswith(f"{at}/device?user_code=")
    assert code in page
    assert made.tokens.refresh_token is not None
    assert signer.pages == []
    assert (await control(at))["asked"]["urn:ietf:params:oauth:grant-type:device_code"] >= 1


@pytest.mark.requirement("023.grants")
@pytest.mark.parametrize(
    ("options", "answer", "said"),
    [
        ({}, "refuse", "access_denied"),
        ({"device_lifetime": 2}, "nothing", "expired_token|authorization_pending"),
        ({"metadata": {"device_authorization_endpoint": None}}, "allow", "no device flow"),
    ],
    ids=["refused", "expired", "not offered"],
)
async def test_a_device_flow_that_comes_to_nothing_says_why(
    authorization: Started, resource: Started, signed_in: SignedIn, options: dict[str, Any], answer: str, said: str
) -> None:
    with pytest.raises(PegboardError, match=said):
        await signed_in(resource(authorization(**options)), Signer(answer=answer), grant="device_code")


@pytest.mark.requirement("023.grants")
async def test_a_client_that_signs_in_by_itself_needs_no_person(
    authorization: Started, resource: Started, signed_in: SignedIn
) -> None:
    at = authorization(clients={"robot": "robots-secret"})
    url = resource(at, scopes=["read"])
    own = {"grant": "client_credentials", "client_id": "robot", "client_secret": "robots-secret", "issuer": at}
    made = await signed_in(url, alone=True, **own)

    assert made.scopes == ("read",)
    assert made.tokens.refresh_token is None
    with pytest.raises(PegboardError, match="Signing in to 'signed' failed") as refused:
        await signed_in(url, alone=True, **own | {"client_secret": "robots-wrong-secret"})
    assert "robots-wrong-secret" not in json.dumps(refused.value.payload())


async def test_a_server_without_registration_says_that_a_client_has_to_be_configured(
    authorization: Started, resource: Started, signed_in: SignedIn
) -> None:
    at = authorization(metadata={"registration_endpoint": None})
    with pytest.raises(PegboardError, match=r"Registration failed.*client_id"):
        await signed_in(resource(at))
