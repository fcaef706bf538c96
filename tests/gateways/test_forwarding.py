"""Only what is a model request goes on to a provider, and never with a key, a token or a cookie of Pegboard's."""

from __future__ import annotations

import asyncio
import logging

import httpx2
import pytest

from model_bodies import asking
from model_upstream import ModelUpstream
from pegboard.gateways.access_keys import hashed, new_key
from served import Gateway, OpenGateway

TOKEN, KEY = new_key(), new_key()
ACCESS = {"ann": {"hash": hashed(TOKEN)}}
KEYS = {"team": {"hash": hashed(KEY)}}
BEARER = {"authorization": f"Bearer {TOKEN}"}
CHAT = "/v1/chat/completions"
PROVIDERS = "the-providers-own-key"


async def raw(gateway: Gateway, target: str, *headers: str, method: str = "GET") -> str:
    """The first line of the answer to a request whose path no client library has mended."""
    address = httpx2.URL(gateway.server.url)
    reading, writing = await asyncio.open_connection(address.host, address.port)
    lines = [f"{method} {target} HTTP/1.1", *headers, "Connection: close", "", ""]
    if not any(each.lower().startswith("host:") for each in headers):
        lines.insert(1, f"Host: {address.host}:{address.port}")
    writing.write("\r\n".join(lines).encode())
    answer = await reading.read()
    writing.close()
    return answer.partition(b"\r\n")[0].decode()


@pytest.mark.requirement("B2")
@pytest.mark.parametrize(
    "path",
    [
        "/",
        "/sse",
        "/mpc",
        "/mcpx",
        "/register",
        "/authorize",
        "/token",
        "/.well-known/oauth-authorization-server",
        "/.well-known/oauth-protected-resource/mcp",
        "/.well-known/openid-configuration",
        "/v1",
        "/favicon.ico",
    ],
)
@pytest.mark.parametrize("method", ["GET", "POST"])
async def test_a_path_that_is_no_model_apis_is_not_found_and_goes_nowhere(
    gateway_of: OpenGateway, upstream: ModelUpstream, path: str, method: str
) -> None:
    async with gateway_of(access=ACCESS) as gateway:
        answer = await gateway.http.request(method, path, headers=BEARER, content=b"{}")

    assert answer.status_code == 404
    assert TOKEN not in answer.text
    assert upstream.sent == []


@pytest.mark.requirement("B2")
async def test_without_upstreams_no_model_path_is_served(gateway_of: OpenGateway, upstream: ModelUpstream) -> None:
    async with gateway_of(llm={"upstreams": {}}) as gateway:
        answers = [await gateway.http.post(path, json=asking("openai_chat")) for path in (CHAT, f"/openai{CHAT}")]

    assert [answer.status_code for answer in answers] == [404, 404]
    assert "[llm]" in answers[0].text


@pytest.mark.requirement("B2")
@pytest.mark.parametrize(
    ("path", "format_", "headers"),
    [
        (CHAT, "openai_chat", {}),
        ("/chat/completions", "openai_chat", {}),
        ("/v1/responses", "openai_responses", {}),
        ("/v1/messages", "anthropic", {"anthropic-version": "2023-06-01"}),
        ("/v1beta/models/some:generateContent", "gemini", {}),
    ],
)
async def test_a_model_apis_path_needs_no_upstreams_name(
    gateway_of: OpenGateway, upstream: ModelUpstream, path: str, format_: str, headers: dict[str, str]
) -> None:
    async with gateway_of() as gateway:
        answer = await gateway.http.post(path, json=asking(format_), headers=headers)

    assert answer.status_code == 200, answer.text
    assert upstream.sent[0].target == path


@pytest.mark.requirement("B2")
@pytest.mark.parametrize("header", ["authorization", "x-api-key", "x-goog-api-key", "api-key"])
async def test_a_token_of_the_mcp_gateway_is_refused_where_a_providers_key_belongs(
    gateway_of: OpenGateway, upstream: ModelUpstream, header: str
) -> None:
    shown = {header: f"Bearer {TOKEN}" if header == "authorization" else TOKEN}
    async with gateway_of(access=ACCESS) as gateway:
        answer = await gateway.http.post(CHAT, json=asking("openai_chat"), headers=shown)

    assert answer.status_code == 401
    assert "is not a key for models" in answer.text
    assert TOKEN not in answer.text
    assert upstream.sent == []


@pytest.mark.requirement("B2")
async def test_no_token_key_or_cookie_of_ours_reaches_a_provider(
    gateway_of: OpenGateway, upstream: ModelUpstream
) -> None:
    shown = BEARER | {
        "x-pegboard-key": KEY,
        "x-api-key": "the-callers-own",
        "cookie": f"theirs=1; pegboard_session=2; other={TOKEN}",
    }
    async with gateway_of(access=ACCESS, llm={"keys": KEYS}) as gateway:
        answer = await gateway.http.post(CHAT, json=asking("openai_chat"), headers=shown)

    assert answer.status_code == 200, answer.text
    sent = upstream.sent[0]
    assert TOKEN not in sent.whole
    assert KEY not in sent.whole
    assert sent.headers["cookie"] == "theirs=1"
    assert sent.headers["x-api-key"] == "the-callers-own"


@pytest.mark.requirement("D8")
@pytest.mark.parametrize(
    "target",
    [
        "/openai/../../admin",
        "/openai/v1/../../admin",
        "/openai/%2e%2e/admin",
        "/openai/v1/%2E%2E/%2e./admin",
        "/openai/..%2f..%2fadmin",
        "/openai/v1/..%252f..%252fadmin",
        "/openai/..%5cadmin",
        "/openai/..;/admin",
        "/openai/x/..;a=1/admin",
        "/../openai/v1/models",
    ],
)
async def test_no_dot_segment_leads_out_of_an_upstream(
    gateway_of: OpenGateway, upstream: ModelUpstream, target: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PROVIDER_KEY", PROVIDERS)
    based = {"openai": {"url": f"{upstream.url}/tenant", "api_key_env": "PROVIDER_KEY"}}
    async with gateway_of(llm={"upstreams": based}) as gateway:
        line = await raw(gateway, target)

    assert line.split()[1] in ("400", "404")
    assert upstream.sent == []


@pytest.mark.requirement("D8")
async def test_dot_segments_within_an_upstream_are_resolved_and_other_escapes_are_kept(
    gateway_of: OpenGateway, upstream: ModelUpstream
) -> None:
    async with gateway_of() as gateway:
        await raw(gateway, "/openai/v1/./x/../models/some%2Fmodel.v1?a=..%2F")

    assert [sent.target for sent in upstream.sent] == ["/v1/models/some%2Fmodel.v1?a=..%2F"]


@pytest.mark.requirement("D4")
@pytest.mark.parametrize(
    "headers",
    [
        ["Host: evil.com"],
        ["Host: evil.com:7332"],
        ["Host: localhost.evil.com"],
        ["Host: 127.0.0.1", "X-Forwarded-For: 203.0.113.7"],
        ["Host: 127.0.0.1", "Forwarded: for=203.0.113.7"],
    ],
)
async def test_a_providers_key_is_not_used_for_other_sites_or_for_whom_a_proxy_asks(
    gateway_of: OpenGateway, upstream: ModelUpstream, headers: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PROVIDER_KEY", PROVIDERS)
    held = {"openai": {"url": upstream.url, "api_key_env": "PROVIDER_KEY"}}
    async with gateway_of(llm={"upstreams": held}) as gateway:
        line = await raw(gateway, "/openai/v1/models", *headers)

    assert line.split()[1] == "401"
    assert upstream.sent == []


@pytest.mark.requirement("D4")
async def test_a_providers_key_is_used_on_loopback_and_for_keys_of_the_gateway(
    gateway_of: OpenGateway, upstream: ModelUpstream, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PROVIDER_KEY", PROVIDERS)
    held = {"openai": {"url": upstream.url, "api_key_env": "PROVIDER_KEY"}}
    async with gateway_of(llm={"upstreams": held}) as gateway:
        lines = [await raw(gateway, "/openai/v1/models"), await raw(gateway, "/openai/v1/models", "Host: localhost:1")]
    async with gateway_of(llm={"upstreams": held}, allowed_hosts=["gateway.test"]) as gateway:
        lines.append(await raw(gateway, "/openai/v1/models", "Host: gateway.test"))
    async with gateway_of(llm={"upstreams": held, "keys": KEYS}) as gateway:
        lines.append(await raw(gateway, "/openai/v1/models", "Host: evil.com", f"Authorization: Bearer {KEY}"))

    assert [line.split()[1] for line in lines] == ["200"] * 4
    assert {sent.headers["authorization"] for sent in upstream.sent} == {f"Bearer {PROVIDERS}"}


@pytest.mark.requirement("D4")
async def test_the_start_says_that_other_machines_need_a_key_for_the_providers_keys(
    gateway_of: OpenGateway,
    upstream: ModelUpstream,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    monkeypatch.setenv("PROVIDER_KEY", PROVIDERS)
    held = {"openai": {"url": upstream.url, "api_key_env": "PROVIDER_KEY"}}
    with caplog.at_level(logging.WARNING):
        async with gateway_of(llm={"upstreams": held}, access=ACCESS, host="0.0.0.0"):  # noqa: S104
            pass

    assert "[llm.keys]" in caplog.text
    assert PROVIDERS not in caplog.text
