"""What providers count is read from the answers of every format, streamed or not, and priced."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from model_bodies import asking
from model_upstream import ModelUpstream
from pegboard.activity_entries import ActivityTotals
from pegboard.events import ModelRequestServed
from pegboard.stores import MemoryActivity, MemoryEvents
from processes import until
from served import Gateway, OpenGateway

PATHS = {
    "openai_chat": "/openai/v1/chat/completions",
    "openai_responses": "/openai/v1/responses",
    "anthropic": "/anthropic/v1/messages",
    "gemini": "/gemini/v1beta/models/gpt-x:generateContent",
}
WHOLE: dict[str, dict[str, Any]] = {
    "openai_chat": {
        "id": "c",
        "choices": [{"message": {"role": "assistant", "content": "x"}}],
        "usage": {
            "prompt_tokens": 120,
            "completion_tokens": 20,
            "prompt_tokens_details": {"cached_tokens": 100, "cache_write_tokens": 10},
        },
    },
    "openai_responses": {
        "id": "r",
        "output": [],
        "usage": {
            "input_tokens": 120,
            "output_tokens": 20,
            "input_tokens_details": {"cached_tokens": 100, "cache_write_tokens": 10},
        },
    },
    "anthropic": {
        "id": "m",
        "content": [],
        "usage": {
            "input_tokens": 10,
            "output_tokens": 20,
            "cache_read_input_tokens": 100,
            "cache_creation_input_tokens": 10,
        },
    },
    "gemini": {
        "responseId": "g",
        "candidates": [],
        "usageMetadata": {
            "promptTokenCount": 120,
            "candidatesTokenCount": 15,
            "thoughtsTokenCount": 5,
            "cachedContentTokenCount": 100,
        },
    },
}
PRICES = {"gpt-x": {"input": 2.0, "cached": 0.2, "written": 2.5, "output": 10.0}}


async def served(gateway: Gateway, events: MemoryEvents, name: str, **body: Any) -> ModelRequestServed:
    before = len(events.of(ModelRequestServed))
    asked = asking(name, "what is alpha?", tools=["a", "b"], model="gpt-x") | body
    assert (await gateway.http.post(PATHS[name], json=asked)).status_code == 200
    await until(lambda: len(events.of(ModelRequestServed)) > before)
    event = events.of(ModelRequestServed)[-1]
    assert isinstance(event, ModelRequestServed)
    return event


@pytest.mark.requirement("observability.money")
@pytest.mark.parametrize("name", PATHS)
@pytest.mark.parametrize("streamed", [True, False])
async def test_what_the_provider_counted_is_on_the_event_with_its_price(
    gateway_of: OpenGateway, upstream: ModelUpstream, events: MemoryEvents, data: Path, name: str, streamed: bool
) -> None:
    if streamed:
        upstream.body, upstream.kind = (data / "llm" / f"{name}.sse").read_bytes(), "text/event-stream"
    else:
        upstream.body = json.dumps(WHOLE[name]).encode()
    store = MemoryActivity()
    async with gateway_of(activity={"prices": PRICES}, parts={"activity": store}) as gateway:
        event = await served(gateway, events, name, **({"stream": True} if streamed else {}))
        await gateway.http.get("/ui")
        [(_, totals)] = await store.by_day(0)

    written = 10 if name == "anthropic" or (not streamed and name.startswith("openai")) else 0
    counted = (event.input_tokens, event.cached_tokens, event.written_tokens, event.output_tokens)
    assert counted == (120, 100, written, 20)
    assert event.cost == (20 - written) * 2_000 + 100 * 200 + written * 2_500 + 20 * 10_000
    assert (totals.input_tokens, totals.cost, totals.unpriced) == (120, event.cost, 0)


async def test_what_a_provider_counts_wrong_is_kept_within_bounds(
    gateway_of: OpenGateway, upstream: ModelUpstream, events: MemoryEvents
) -> None:
    upstream.body = json.dumps(
        WHOLE["openai_chat"] | {"usage": {"prompt_tokens": 2**63, "completion_tokens": -1}}
    ).encode()
    async with gateway_of(activity={"prices": PRICES}) as gateway:
        event = await served(gateway, events, "openai_chat")
        page = await gateway.http.get("/ui")

    assert (event.input_tokens, event.output_tokens) == (10**12, 0)
    assert page.status_code == 200


@pytest.mark.requirement("observability.money")
async def test_a_model_without_a_price_and_an_answer_without_a_count_have_no_cost(
    gateway_of: OpenGateway, upstream: ModelUpstream, events: MemoryEvents
) -> None:
    store = MemoryActivity()
    async with gateway_of(parts={"activity": store}) as gateway:
        upstream.body = json.dumps(WHOLE["openai_chat"]).encode()
        unknown = await served(gateway, events, "openai_chat", model="nobody-knows-it")
        upstream.body = b'{"id": "c", "choices": []}'
        uncounted = await served(gateway, events, "openai_chat", model="gpt-5.6")
        upstream.mood = "error"
        await gateway.http.post(PATHS["openai_chat"], json=asking("openai_chat", "a", tools=["a"], model="gpt-5.6"))
        await gateway.http.get("/ui")
        groups = {each.name: each for each in await store.by("model", 0, 9)}

    assert (unknown.metered, unknown.input_tokens, unknown.cost) == (True, 120, None)
    assert (uncounted.metered, uncounted.input_tokens, uncounted.cost) == (True, 0, None)
    assert groups["nobody-knows-it"].totals.unpriced == 1
    assert not groups["nobody-knows-it"].priced
    assert groups["gpt-5.6"].totals == ActivityTotals(
        *groups["gpt-5.6"].totals[:8], 0, 0, 0, 0, 0, 1
    )  # the one that failed is no request without a cost
