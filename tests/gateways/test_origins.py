"""Requests to models from pages in browsers and from desktop programs, which send an `Origin` too."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import ValidationError

from model_bodies import asking
from model_upstream import ModelUpstream
from pegboard.gateways.access_keys import hashed, new_key
from pegboard.settings import Settings
from served import OpenGateway

CHAT = "/openai/v1/chat/completions"
REQUESTS = {
    CHAT: "openai_chat",
    "/openai/v1/responses": "openai_responses",
    "/anthropic/v1/messages": "anthropic",
    "/gemini/v1beta/models/some-model:generateContent": "gemini",
    "/v1/messages": "anthropic",
}
WEB = ["null", "https://evil.example", "http://localhost.evil.example", "file://", "chrome-extension://abcdef"]
DESKTOP = [
    "vscode-file://vscode-app",
    "vscode-webview://0q9j2l7p4c1h8vt1s5bq0f0vtv9sn5bd4n4c4t1lq1b4rqp3",
    "app://obsidian.md",
    "tauri://localhost",
]


def shown(format_: str, body: dict[str, Any]) -> tuple[object, str]:
    """The kind of an error in a provider's shape, and its text."""
    error = body["error"]
    match format_:
        case "anthropic":
            assert body["type"] == "error"
            return error["type"], error["message"]
        case "gemini":
            return error["status"], error["message"]
        case _:
            assert error["code"] == "origin_not_allowed"
            return error["type"], error["message"]


@pytest.mark.requirement("A8")
@pytest.mark.parametrize("path", REQUESTS)
async def test_a_page_that_may_not_use_models_is_told_so_in_the_providers_shape(
    gateway_of: OpenGateway, upstream: ModelUpstream, path: str
) -> None:
    format_ = REQUESTS[path]
    async with gateway_of() as gateway:
        answers = [await gateway.http.post(path, json=asking(format_), headers={"origin": origin}) for origin in WEB]

    for origin, answer in zip(WEB, answers, strict=True):
        kind, text = shown(format_, answer.json())
        assert (answer.status_code, answer.headers["x-pegboard-error"]) == (403, "origin_not_allowed")
        assert kind in ("permission_error", "PERMISSION_DENIED")
        assert origin in text
        assert "allowed_origins" in text
    assert upstream.sent == []


@pytest.mark.requirement("A8")
@pytest.mark.parametrize("origin", DESKTOP)
async def test_desktop_programs_use_models_as_programs_without_pages_do(
    gateway_of: OpenGateway, upstream: ModelUpstream, origin: str
) -> None:
    async with gateway_of() as gateway:
        answer = await gateway.http.post(CHAT, json=asking("openai_chat"), headers={"origin": origin})

    assert answer.status_code == 200
    assert len(upstream.sent) == 1


@pytest.mark.requirement("A8")
async def test_a_rebound_name_is_refused_whatever_the_origin_says(
    gateway_of: OpenGateway, upstream: ModelUpstream
) -> None:
    async with gateway_of() as gateway:
        headers = {"host": "evil.example", "origin": DESKTOP[0]}
        answer = await gateway.http.post(CHAT, json=asking("openai_chat"), headers=headers)

    assert (answer.status_code, answer.headers["x-pegboard-error"]) == (421, "host_not_allowed")
    assert "allowed_hosts" in answer.json()["error"]["message"]
    assert upstream.sent == []


@pytest.mark.requirement("A8")
async def test_pages_that_the_configuration_names_may_use_models(gateway_of: OpenGateway) -> None:
    allowed = ("null", "https://chat.example.com", "chrome-extension://abcdef")
    async with gateway_of(allowed_origins=allowed) as gateway:
        answers = [
            await gateway.http.post(CHAT, json=asking("openai_chat"), headers={"origin": origin})
            for origin in (*allowed, "https://evil.example", "https://chat.example.com.evil.example")
        ]

    assert [answer.status_code for answer in answers] == [200, 200, 200, 403, 403]


PAGE = "https://chat.example.com"
KEY = new_key()
KEYS = {"ann": {"hash": hashed(KEY)}}
PREFLIGHT = {"access-control-request-method": "POST", "access-control-request-headers": "authorization,content-type"}


@pytest.mark.requirement("A8")
async def test_an_allowed_page_is_let_in_by_its_key_not_by_its_preflight(
    gateway_of: OpenGateway, upstream: ModelUpstream
) -> None:
    """A preflight has no key. What the provider allows pages is not what the gateway allows them."""
    upstream.headers = {"access-control-allow-origin": "https://provider.example"}
    async with gateway_of(allowed_origins=(PAGE,), llm={"keys": KEYS}) as gateway:
        asked = await gateway.http.options(CHAT, headers=PREFLIGHT | {"origin": PAGE})
        before = len(upstream.sent)
        unknown, known = [
            await gateway.http.post(CHAT, json=asking("openai_chat"), headers={"origin": PAGE} | shown)
            for shown in ({}, {"authorization": f"Bearer {KEY}"})
        ]

    assert (asked.status_code, asked.content, before) == (204, b"", 0)
    assert asked.headers["access-control-allow-origin"] == PAGE
    assert asked.headers["access-control-allow-methods"] == "POST"
    assert asked.headers["access-control-allow-headers"] == "authorization,content-type"
    assert "access-control-allow-credentials" not in asked.headers
    assert (unknown.status_code, known.status_code, len(upstream.sent)) == (401, 200, 1)
    for answer in (asked, unknown, known):
        assert answer.headers.get_list("access-control-allow-origin") == [PAGE]
        assert answer.headers["vary"] == "origin"


@pytest.mark.requirement("A8")
@pytest.mark.parametrize("origin", WEB)
async def test_no_other_page_gets_an_answer_to_its_preflight(
    gateway_of: OpenGateway, upstream: ModelUpstream, origin: str
) -> None:
    async with gateway_of(allowed_origins=(PAGE,)) as gateway:
        answer = await gateway.http.options(CHAT, headers=PREFLIGHT | {"origin": origin})

    assert (answer.status_code, upstream.sent) == (403, [])
    assert "access-control-allow-origin" not in answer.headers


async def test_programs_without_an_origin_get_no_headers_for_pages(gateway_of: OpenGateway) -> None:
    async with gateway_of(allowed_origins=(PAGE,)) as gateway:
        answer = await gateway.http.post(CHAT, json=asking("openai_chat"))

    assert not [name for name in answer.headers if name.startswith("access-control-")]


async def test_web_sockets_are_refused_in_the_providers_shape(gateway_of: OpenGateway) -> None:
    async with gateway_of() as gateway:
        headers = {"upgrade": "websocket", "connection": "upgrade"}
        answer = await gateway.http.get("/openai/v1/realtime", headers=headers)

    assert (answer.status_code, answer.headers["x-pegboard-error"]) == (501, "no_websockets")
    assert answer.json()["error"]["type"] == "api_error"


@pytest.mark.parametrize("origin", ["https://chat.example.com/", "chat.example.com", "*", ""])
def test_what_no_browser_sends_is_no_origin(origin: str) -> None:
    with pytest.raises(ValidationError, match="allowed_origins"):
        Settings(allowed_origins=(origin,))


def test_origins_come_from_the_environment_as_words(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PEGBOARD_ALLOWED_ORIGINS", "null, https://chat.example.com")
    assert Settings().allowed_origins == ("null", "https://chat.example.com")
