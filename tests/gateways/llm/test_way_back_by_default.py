"""Without a word on it in the configuration, a model can search for left-out tools, where that costs least."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Sequence
from dataclasses import replace
from typing import Any

import httpx2
import pytest

from back_office import JOBS, LOAN, PATHS, asking
from model_doors import model_door
from model_upstream import ModelUpstream, model_upstream
from pegboard.gateways.llm.selection.policy_rules import Policies
from pegboard.prompt_cache import Traffic, cheapest_way, expected_bills, known_prices, prices_of
from pegboard.settings.llm import LlmSettings
from pegboard.stores import MemoryEmbeddings
from pegboard.testing import FakeEncoder
from pegboard.traffic import Seen, Turned

NOT_SAID = {"way_back": None}
"""Over what the tests of this folder otherwise say."""
ANSWERS = {
    "openai_chat": b'{"id":"c1","choices":[{"index":0,"message":{"role":"assistant","content":"Hi"}}] }',
    "openai_responses": b'{"id":"r1","object":"response","status":"completed","output":[ ],"tools":[]}',
    "anthropic": b'{"id":"m1","type":"message","content":[{"type":"text","text":"Hi"}] ,"stop_reason":"end_turn"}',
    "gemini": b'{"candidates":[{"content":{"role":"model","parts":[{"text":"Hi"}]} ,"finishReason":"STOP"}]}',
}
STORE = {"openai_responses": {"store": False}}
formats = pytest.mark.parametrize("name", ANSWERS)


@pytest.fixture
async def upstream() -> AsyncIterator[ModelUpstream]:
    async with model_upstream() as found:
        yield found


async def exchanged(
    upstream: ModelUpstream, name: str, headers: dict[str, str] | None = None, **policy: Any
) -> tuple[bytes, list[str], bytes]:
    """What was sent, the names of its tools, and what the client got."""
    upstream.body = ANSWERS[name]
    upstreams = {each: {"url": upstream.url, "format": each} for each in ("openai", "anthropic", "gemini")}
    parts: dict[str, Any] = {"encoder": FakeEncoder(), "embeddings": MemoryEmbeddings()}
    terms = {"profile": "semantic", "k": 1} | NOT_SAID | policy
    async with (
        model_door(upstreams, parts=parts, policy=terms) as (address, _, _),
        httpx2.AsyncClient(base_url=f"http://{address}", trust_env=False, timeout=60) as http,
    ):
        body = asking(name, [LOAN]) | STORE.get(name, {})
        got = await http.post(PATHS[name], json=body, headers=headers or {})
    assert got.status_code == 200
    return upstream.sent[-1].body, names(json.loads(upstream.sent[-1].body)), got.content


def names(body: dict[str, Any]) -> list[str]:
    declared = [tool for each in body["tools"] for tool in each.get("functionDeclarations", (each,))]
    return [tool.get("function", tool)["name"] for tool in declared]


@formats
async def test_a_filtered_request_has_the_search_and_an_answer_without_one_is_the_providers(
    upstream: ModelUpstream, name: str
) -> None:
    _, tools, got = await exchanged(upstream, name)

    assert len(tools) == 2
    assert tools[-1] == "search_tools"
    assert got == ANSWERS[name]
    assert len(upstream.sent) == 1


@formats
async def test_where_nothing_is_left_out_the_request_is_the_clients(upstream: ModelUpstream, name: str) -> None:
    sent, tools, got = await exchanged(upstream, name, least_tools=len(JOBS) + 1)

    assert json.loads(sent) == asking(name, [LOAN]) | STORE.get(name, {})
    assert len(tools) == len(JOBS)
    assert got == ANSWERS[name]


@formats
async def test_a_request_may_do_without(upstream: ModelUpstream, name: str) -> None:
    _, tools, _ = await exchanged(upstream, name, {"x-pegboard-way-back": "off"})

    assert len(tools) == 1
    assert tools != ["search_tools"]


def test_the_policy_of_the_gateway_article_adds_no_tool() -> None:
    article = {"url": "http://127.0.0.1:9", "format": "generic", "semantic_tool_filtering": {}}
    policies = Policies(LlmSettings(upstreams={"one": article}))

    assert not policies.of("one", "m", None, {}).tool_search.any


def test_tools_that_could_be_searched_for_are_not_forbidden_unless_that_is_asked_for() -> None:
    def narrows(**policy: Any) -> bool:
        return Policies(LlmSettings(policy=policy)).of("openai", "m", None, {}).policy.allowed_tools

    assert [narrows(), narrows(way_back=False), narrows(allowed_tools=True)] == [False, True, True]


# What it costs decides whether tools are left out at all.

SHORT = Traffic(turns=2.4, asked=40, growth=130, wanted=1_400, returns=1.0, news=0.0, called=0.0, system=130, kept=1.0)
"""One request of a user and a call, one after the other within the cache's lifetime."""
SEARCH = 600.0
MODELS = (("openai", "gpt-5.4"), ("anthropic", "claude-sonnet-5"))
models = pytest.mark.parametrize(("provider", "model"), MODELS)


@models
@pytest.mark.parametrize(("total", "way"), [(7_000, "whole"), (47_000, "tools")])
def test_a_board_that_is_cheaper_cached_than_a_search_is_left_whole(
    provider: Any, model: str, total: int, way: str
) -> None:
    prices = prices_of(known_prices(), provider, model)

    assert cheapest_way(SHORT, prices, total, 0, ("whole", "tools"), way_back=SEARCH) == way


@models
def test_nobodys_board_in_the_cache_and_no_cache_at_all_are_reasons_to_filter(provider: Any, model: str) -> None:
    prices = prices_of(known_prices(), provider, model)
    alone = replace(SHORT, kept=0.0)

    assert cheapest_way(alone, prices, 7_000, 0, ("whole", "tools"), way_back=SEARCH) == "tools"
    assert cheapest_way(SHORT, prices_of((), provider, model), 7_000, 0, ("whole", "tools"), way_back=SEARCH) == "tools"


@models
def test_the_search_tool_and_a_search_now_and_then_are_in_the_bill(provider: Any, model: str) -> None:
    prices = prices_of(known_prices(), provider, model)
    bills = [expected_bills(SHORT, prices, 7_000, 0, way_back=tokens) for tokens in (0.0, SEARCH)]

    assert bills[1]["tools"] - bills[0]["tools"] > SEARCH * prices.write
    assert bills[0]["whole"] == bills[1]["whole"]


def test_searches_that_were_seen_as_turns_with_news_are_not_counted_twice() -> None:
    prices = prices_of(known_prices(), "openai", "gpt-5.4")

    def more(traffic: Traffic) -> float:
        once = [expected_bills(traffic, prices, 7_000, 0, way_back=tokens)["tools"] for tokens in (1e-9, 0.0)]
        return once[0] - once[1]

    assert more(SHORT) > 100
    assert more(replace(SHORT, turns=4.0, news=0.1)) < 1e-6


@pytest.mark.parametrize("others", [(True,) * 5, (False,) * 5])
def test_that_the_first_conversation_follows_none_is_no_sign_that_the_cache_is_cold(others: Sequence[bool]) -> None:
    seen = Seen().after(Turned(first=True, ahead=40, wanted=1_400))
    for kept in others:
        seen = seen.after(Turned(first=True, ahead=40, wanted=1_400, kept=kept))

    assert seen.traffic(130).kept == pytest.approx(float(others[0]), abs=0.02)
