"""The gateway's own keys, over HTTP."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from model_bodies import asking
from model_upstream import ModelUpstream
from pegboard.events import ModelRequestServed
from pegboard.gateways.access_keys import hashed, new_key
from pegboard.gateways.llm.proxy.keys import Keys
from pegboard.settings.llm import KeySettings
from pegboard.stores import MemoryEvents
from served import OpenGateway

TEAM, OTHER = new_key(), new_key()
KEYS = {
    "team": {"hash": hashed(TEAM), "upstreams": ["openai", "gemini"], "profile": "semantic", "k": 2},
    "other": {"hash": hashed(OTHER)},
}
CHAT = "/openai/v1/chat/completions"
SEMANTIC = {"profile": "semantic", "k": 3, "least_tools": 0, "least_tokens": 0, "way_back": False}


@pytest.mark.parametrize(
    "shown",
    [
        {"authorization": f"Bearer {TEAM}"},
        {"authorization": f"bearer {TEAM}"},
        {"x-api-key": TEAM},
        {"x-goog-api-key": TEAM},
        {"api-key": TEAM},
        {"x-pegboard-key": TEAM, "authorization": "Bearer the-providers"},
    ],
    ids=["bearer", "bearer-small", "anthropic", "gemini", "azure", "beside-the-providers"],
)
async def test_a_key_is_known_wherever_a_client_puts_it_and_goes_no_further(
    gateway_of: OpenGateway, upstream: ModelUpstream, events: MemoryEvents, shown: dict[str, str]
) -> None:
    async with gateway_of(llm={"keys": KEYS}) as gateway:
        answer = await gateway.http.post(CHAT, json=asking("openai_chat"), headers=shown)

    assert answer.status_code == 200, answer.text
    assert TEAM not in upstream.sent[0].whole
    assert ("the-providers" in upstream.sent[0].whole) == ("the-providers" in str(shown))
    assert [event.key for event in events.of(ModelRequestServed)] == ["team"]


async def test_a_key_in_the_query_is_known_and_goes_no_further(
    gateway_of: OpenGateway, upstream: ModelUpstream
) -> None:
    path = f"/gemini/v1beta/models/some-model:generateContent?alt=sse&key={TEAM}"
    async with gateway_of(llm={"keys": KEYS}) as gateway:
        answer = await gateway.http.post(path, json=asking("gemini"))

    assert answer.status_code == 200, answer.text
    assert upstream.sent[0].target == "/v1beta/models/some-model:generateContent?alt=sse"


async def test_the_providers_key_takes_the_place_of_ours(
    gateway_of: OpenGateway, upstream: ModelUpstream, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PROVIDER_KEY", "the-providers")
    upstreams = {"openai": {"url": upstream.url, "api_key_env": "PROVIDER_KEY"}}
    async with gateway_of(llm={"upstreams": upstreams, "keys": KEYS}) as gateway:
        await gateway.http.post(CHAT, json=asking("openai_chat"), headers={"x-api-key": OTHER})

    assert upstream.sent[0].headers["authorization"] == "Bearer the-providers"
    assert OTHER not in upstream.sent[0].whole


@pytest.mark.parametrize("shown", [{}, {"authorization": f"Bearer {new_key()}"}, {"authorization": "Basic eDp5"}])
async def test_without_a_key_of_ours_nothing_is_passed_on(
    gateway_of: OpenGateway, upstream: ModelUpstream, shown: dict[str, str]
) -> None:
    async with gateway_of(llm={"keys": KEYS}) as gateway:
        answer = await gateway.http.post(CHAT, json=asking("openai_chat"), headers=shown)
        by_get = await gateway.http.get("/openai/v1/models", headers=shown)

    assert (answer.status_code, by_get.status_code) == (401, 401)
    assert answer.json()["error"]["type"] == "authentication_error"
    assert not any(value.partition(" ")[2] in answer.text for value in shown.values())
    assert upstream.sent == []


def test_conversations_stay_those_of_a_key_that_is_rotated_and_of_no_other() -> None:
    old, new, other = new_key(), new_key(), new_key()
    later = datetime(2100, 1, 1, tzinfo=UTC)
    rotated = KeySettings(hash=hashed(new), previous=hashed(old), previous_expires=later)
    keys = Keys({"team": rotated, "other": KeySettings(hash=hashed(other))})

    def owner(name: str | None, *shown: str, upstream: str = "openai", query: str | None = None) -> str:
        headers = [(b"Authorization", f"Bearer {each}".encode()) for each in shown]
        return keys.owner(upstream, name, headers, query)

    before = Keys({"team": KeySettings(hash=hashed(old))})
    assert before.owner("openai", "team", [(b"authorization", b"Bearer " + old.encode())]) == owner("team", new)
    assert owner("team", old) == owner("team", new) == owner("team")
    apart = [
        owner("team", new),
        owner("other", other),
        owner("team", new, "sk-one"),
        owner("team", new, "sk-two"),
        owner("team", other),
        owner("team", new, upstream="azure"),
        owner("team", query="AIza-one"),
        owner("team", query="AIza-two"),
    ]
    assert len(set(apart)) == len(apart)


def test_without_keys_of_the_gateways_conversations_belong_to_whoever_shows_the_credentials() -> None:
    keys = Keys({}, is_token=lambda text: text.startswith("token"))
    shown = ["sk-one", "sk-two", "token-one", "token-two"]

    assert len({keys.owner("openai", None, [(b"x-api-key", each.encode())]) for each in shown}) == len(shown)


async def test_a_key_is_for_its_upstreams_only(gateway_of: OpenGateway, upstream: ModelUpstream) -> None:
    async with gateway_of(llm={"keys": KEYS}) as gateway:
        answer = await gateway.http.post(
            "/anthropic/v1/messages", json=asking("anthropic"), headers={"x-api-key": TEAM, "anthropic-version": "1"}
        )

    assert answer.status_code == 403
    assert answer.json()["error"]["type"] == "permission_error"
    assert upstream.sent == []


async def test_a_keys_policy_holds_for_it_and_for_no_other(gateway_of: OpenGateway, upstream: ModelUpstream) -> None:
    kept = []
    async with gateway_of(llm={"keys": KEYS, "policy": SEMANTIC}) as gateway:
        for key in (TEAM, OTHER):
            await gateway.http.post(CHAT, json=asking("openai_chat"), headers={"x-api-key": key})
            kept.append(len(upstream.tools))

    assert kept == [2, 3]


@pytest.mark.parametrize(
    ("wish", "kept"),
    [({"x-pegboard-k": "1"}, 1), ({"x-pegboard-k": "4"}, 2), ({"x-pegboard-filter": "off"}, 2)],
    ids=["fewer", "more", "none-of-it"],
)
async def test_a_request_can_only_narrow_what_its_keys_policy_allows(
    gateway_of: OpenGateway, upstream: ModelUpstream, wish: dict[str, str], kept: int
) -> None:
    async with gateway_of(llm={"keys": KEYS, "policy": SEMANTIC}) as gateway:
        await gateway.http.post(CHAT, json=asking("openai_chat"), headers={"x-api-key": TEAM} | wish)

    assert len(upstream.tools) == kept
    assert not any(name.lower().startswith("x-pegboard") for name in upstream.sent[0].headers)
