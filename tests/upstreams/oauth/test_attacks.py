"""What a hostile server, authorization server or web page could try while somebody signs in."""

from __future__ import annotations

import asyncio
import gzip
import json
import logging
from collections.abc import Callable
from typing import Any

import httpx2
import pytest

from pegboard.clock import SYSTEM_CLOCK
from pegboard.errors import PegboardError, UpstreamError
from pegboard.settings import Settings
from pegboard.settings.oauth_settings import OAuthSettings
from pegboard.settings.server_spec import ServerSpec
from pegboard.upstreams import Fleet
from pegboard.upstreams.oauth.bearer_auth import BearerAuth
from pegboard.upstreams.oauth.credential_store import CredentialStore
from pegboard.upstreams.oauth.guarded_transport import AddressRefused, guarded_client
from pegboard.upstreams.oauth.loopback import loopback
from pegboard.upstreams.oauth.sign_ins import SignIns
from processes import until
from signers import Signer, control

pytestmark = pytest.mark.requirement("023.attacks")

Started = Callable[..., str]
SignedIn = Callable[..., Any]
PUBLIC = "https://93.184.215.14/mcp"
CANARY = "canary-5ebe2294"


async def code_was_used(at: str) -> bool:
    return "authorization_code" in (await control(at))["asked"]


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"iss": "https://attacker.example"}, "iss mismatch"),
        ({"iss": ""}, "missing iss"),
        ({"metadata": {"issuer": "https://honest.example"}}, "issuer mismatch"),
        ({"metadata": {"code_challenge_methods_supported": None}}, "supports PKCE"),
        ({"metadata": {"code_challenge_methods_supported": ["plain"]}}, "supports PKCE"),
        ({"metadata": {"authorization_endpoint": "http://93.184.215.14/authorize"}}, "is not https"),
    ],
    ids=["another issuer answers", "no issuer answers", "metadata of another", "no PKCE", "plain PKCE", "open page"],
)
async def test_a_code_is_never_shown_to_the_wrong_server_and_never_without_pkce(
    authorization: Started, resource: Started, signed_in: SignedIn, options: dict[str, Any], said: str
) -> None:
    at = authorization(**options)
    with pytest.raises(PegboardError, match=said):
        await signed_in(resource(at))
    assert not await code_was_used(at)


async def test_metadata_for_another_resource_are_refused_before_anything_is_asked_for(
    authorization: Started, resource: Started, signed_in: SignedIn
) -> None:
    at = authorization()
    another = {"resource": "https://bank.example/mcp", "authorization_servers": [at]}
    with pytest.raises(PegboardError, match="does not match expected"):
        await signed_in(resource(at, metadata=another))
    assert (await control(at))["asked"] == {}


async def test_a_configured_client_is_shown_to_no_other_authorization_server(
    authorization: Started, resource: Started, signed_in: SignedIn
) -> None:
    theirs = authorization()
    own = {"client_id": "ours", "client_secret": CANARY, "issuer": "https://login.example"}
    for grant in ("authorization_code", "device_code", "client_credentials"):
        with pytest.raises(PegboardError, match="the server does not name"):
            await signed_in(resource(theirs), grant=grant, **own)
    assert (await control(theirs))["asked"] == {}


async def test_redirects_to_another_origin_are_not_followed(
    authorization: Started, resource: Started, signed_in: SignedIn
) -> None:
    elsewhere = authorization()
    with pytest.raises(PegboardError):
        await signed_in(resource(elsewhere, metadata=f"{elsewhere}/.well-known/oauth-authorization-server"))
    assert "metadata" not in (await control(elsewhere))["asked"]


@pytest.mark.parametrize(
    "query", ["code=stolen", "code=stolen&state=guessed", "code=stolen&state=", "error=access_denied", ""]
)
async def test_answers_without_the_state_of_this_sign_in_change_nothing_and_lead_nowhere(query: str) -> None:
    async with loopback("notion") as waiting, httpx2.AsyncClient() as page:
        waiting.expect("https://login.example/authorize?state=right")
        answer = await page.get(f"{waiting.url}?{query}")
        assert answer.status_code == 400
        assert "location" not in answer.headers
        assert "frame-ancestors 'none'" in answer.headers["content-security-policy"]
        with pytest.raises(PegboardError, match="Nobody has signed in"):
            await waiting.answer(0.05)

        good = await page.get(f"{waiting.url}?code=right&state=right")
        assert good.status_code == 200
        again = await page.get(f"{waiting.url}?code=second&state=right")
        assert again.status_code == 400
        assert (await waiting.answer(1)).code == "right"


@pytest.mark.parametrize(
    ("address", "said"),
    [
        ("{url}?code=stolen", "not the answer"),
        ("{url}?code=stolen&state=guessed", "not the answer"),
        ("{url}?error=access_denied&state=", "not the answer"),
        ("https://attacker.example/callback?code=right&state=right", "the whole address"),
        ("{url}.attacker.example?code=right&state=right", "the whole address"),
        ("code=right&state=right", "the whole address"),
    ],
)
async def test_a_pasted_address_counts_only_with_the_state_and_the_place_of_this_sign_in(
    address: str, said: str
) -> None:
    async with loopback("notion") as waiting:
        waiting.expect("https://login.example/authorize?state=right")
        assert said in waiting.take(address.format(url=waiting.url))
        with pytest.raises(PegboardError, match="Nobody has signed in"):
            await waiting.answer(0.05)

        assert waiting.take(f" {waiting.url}?code=right&state=right#\n") == ""
        assert "is over" in waiting.take(f"{waiting.url}?code=second&state=right")
        assert (await waiting.answer(1)).code == "right"


async def test_a_callback_listens_on_this_machine_alone_and_answers_only_there() -> None:
    async with loopback("<script>alert(1)</script>") as waiting, httpx2.AsyncClient() as page:
        waiting.expect("https://login.example/authorize?state=right")
        assert waiting.url.startswith("http://127.0.0.1:")
        assert (await page.get(waiting.url.replace("/callback", "/"))).status_code == 404
        assert (await page.post(f"{waiting.url}?code=a&state=right")).status_code == 404
        text = (await page.get(f"{waiting.url}?code=a&state=right")).text
        assert "<script>" not in text


@pytest.mark.parametrize(
    "url",
    [
        "http://169.254.169.254/latest/meta-data",
        "https://10.0.0.1/.well-known/oauth-authorization-server",
        "http://127.0.0.1:9/",
        "https://[::1]/",
        "https://[::ffff:192.168.0.1]/",
        "https://localhost:8443/",
        "http://93.184.215.15/",
        "https://0.0.0.0/",
        "https://100.64.0.1/",
    ],
)
async def test_addresses_that_a_public_server_names_must_be_public_and_encrypted(url: str) -> None:
    async with guarded_client("notion", PUBLIC) as client:
        with pytest.raises(AddressRefused, match="which is not contacted"):
            await client.get(url)


async def test_private_addresses_are_fine_where_they_are_allowed_and_where_the_server_is_private_too(
    authorization: Started,
) -> None:
    at = authorization()
    for server, private in [(PUBLIC, True), ("http://127.0.0.1:1/mcp", False)]:
        async with guarded_client("notion", server, private=private) as client:
            assert (await client.get(f"{at}/.well-known/oauth-authorization-server")).status_code == 200


async def test_an_answer_without_end_is_not_read_to_its_end(authorization: Started) -> None:
    at = authorization()
    await control(at, token_status=200, token_answer="x" * 3_000_000)
    async with guarded_client("notion", f"{at}/mcp") as client:
        with pytest.raises(httpx2.ReadError, match="larger than"):
            await client.post(f"{at}/token")


async def test_a_compressed_answer_that_nobody_asked_for_is_not_unpacked() -> None:
    packed = gzip.compress(b'{"resource": "' + b" " * 30_000_000 + b'"}')
    heads: list[bytes] = []

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        heads.append(await reader.readuntil(b"\r\n\r\n"))
        head = b"HTTP/1.1 200 OK\r\ncontent-encoding: gzip\r\nconnection: close\r\ncontent-length: %d\r\n\r\n"
        writer.write(head % len(packed) + packed)
        await writer.drain()
        writer.close()

    async with await asyncio.start_server(answer, "127.0.0.1", 0) as listening:
        at = f"http://127.0.0.1:{listening.sockets[0].getsockname()[1]}"
        async with guarded_client("notion", f"{at}/mcp") as client:
            with pytest.raises(httpx2.ReadError, match="is compressed"):
                await client.get(f"{at}/.well-known/oauth-protected-resource")
    assert b"accept-encoding: identity" in heads[0].lower()


@pytest.mark.requirement("023.private")
@pytest.mark.parametrize(
    ("status", "answer"),
    [
        (400, {"error": "invalid_grant", "error_description": f"{CANARY} is not the secret"}),
        (200, {"access_token": CANARY, "token_type": "mac"}),
        (500, {"secret": CANARY}),
    ],
)
async def test_an_authorization_server_that_repeats_secrets_does_not_bring_them_into_errors_and_logs(
    authorization: Started,
    resource: Started,
    signed_in: SignedIn,
    caplog: pytest.LogCaptureFixture,
    status: int,
    answer: dict[str, str],
) -> None:
    caplog.set_level(logging.DEBUG, "pegboard")
    caplog.set_level(logging.WARNING)
    at = authorization(clients={"ours": CANARY}, token_status=status, token_answer=json.dumps(answer))
    with pytest.raises(PegboardError) as refused:
        await signed_in(resource(at), client_id="ours", client_secret=CANARY, issuer=at)

    error = refused.value
    assert error.__cause__ is None
    assert CANARY not in f"{error} {json.dumps(error.payload())} {caplog.text}"


def spec_of(url: str, **oauth: Any) -> ServerSpec:
    return ServerSpec(name="signed", url=f"{url}/mcp", oauth=OAuthSettings(**oauth) if oauth else None)


async def test_calls_of_a_server_that_waits_register_no_client(
    authorization: Started, resource: Started, fleet_of: Callable[..., Fleet], settings: Settings
) -> None:
    at = authorization()
    sign_ins = SignIns(settings, SYSTEM_CLOCK)
    async with fleet_of(spec_of(resource(at)), sign_ins=sign_ins) as fleet:
        await until(lambda: fleet.status()[0].state == "signed_out")
        for _ in range(20):
            with pytest.raises(UpstreamError):
                await fleet.upstreams[0].call("whose", {})
    assert (await control(at))["asked"] == {}


async def test_a_client_whose_secret_is_wrong_asks_for_a_token_once_and_not_with_each_request(
    authorization: Started, resource: Started, settings: Settings
) -> None:
    at = authorization(clients={"robot": "robots-secret"})
    url = resource(at)
    spec = spec_of(url, grant="client_credentials", client_id="robot", client_secret="another", issuer=at)
    auth = SignIns(settings, SYSTEM_CLOCK).auth(spec)
    assert isinstance(auth, BearerAuth)
    async with httpx2.AsyncClient(auth=auth) as client:
        answers = await asyncio.gather(*(client.post(f"{url}/mcp", json={}) for _ in range(20)))

    assert {each.status_code for each in answers} == {401}
    assert (await control(at))["asked"]["client_credentials"] == 1


async def test_a_server_that_refuses_every_token_does_not_make_it_ask_for_one_with_each_request(
    authorization: Started, resource: Started, signed_in: SignedIn, settings: Settings
) -> None:
    at = authorization()
    url = resource(at)
    sign_ins = SignIns(settings, SYSTEM_CLOCK)
    sign_ins.store.write(await signed_in(url))
    auth = sign_ins.auth(spec_of(url))
    await control(at, revoke_access=True)
    async with httpx2.AsyncClient(auth=auth) as client:
        answers = [await client.post(f"{url}/mcp", json={}) for _ in range(10)]

    assert {each.status_code for each in answers} == {401}
    assert (await control(at))["asked"]["refresh_token"] == 1


async def test_a_token_is_sent_to_the_origin_of_its_server_alone(
    authorization: Started, resource: Started, signed_in: SignedIn, settings: Settings
) -> None:
    at = authorization()
    url, other = resource(at), resource(at)
    sign_ins = SignIns(settings, SYSTEM_CLOCK)
    sign_ins.store.write(await signed_in(url))
    auth = sign_ins.auth(spec_of(url))
    assert auth is not None

    async def sent_to(address: str) -> bool:
        flow = auth.async_auth_flow(httpx2.Request("POST", address))
        request = await anext(flow)
        await flow.aclose()
        return "authorization" in request.headers

    assert await sent_to(f"{url}/mcp")
    assert not await sent_to(f"{other}/mcp")
    assert sign_ins.store.read(type(auth._key)(server="signed", url=f"{other}/mcp")) is None
    assert isinstance(sign_ins.store, CredentialStore)
    assert not (await control(at))["asked"].get("refresh_token")


async def test_consent_that_another_person_began_is_not_taken_over(
    authorization: Started, resource: Started, signed_in: SignedIn
) -> None:
    """The answer to one sign-in does not end another one: each has a state and a verifier of its own."""
    at = authorization()
    url = resource(at)
    first, second = Signer(), Signer()
    made = await asyncio.gather(signed_in(url, first), signed_in(url, second, user="bob"))

    assert made[0].tokens.access_token != made[1].tokens.access_token
    assert [each.user for each in made] == ["", "bob"]
