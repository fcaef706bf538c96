"""The same conversations with the same tools are sent otherwise at Anthropic's prices than at OpenAI's.

Each choice is billed less than the other would be, by the caches' published rules, over what a strict provider gets.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from typing import Any

import httpx2
import pytest

from back_office import JOBS, PATHS, asking
from model_doors import gateway
from pegboard.catalog import BpeCounter
from pegboard.gateways.llm.conversation import turn_statistics
from pegboard.stores import MemoryEmbeddings
from pegboard.testing import FakeEncoder
from pegboard_bench.cache.prompts import Block, Mark, prompt
from pegboard_bench.cache.providers import Model

SYSTEM = "You run the back office of a library. " * 110
WHAT = "The entry, as it is named in the list. " * 62
"""Of each tool, so that all tools have more than ten times the tokens of the system text and a tool."""
MODELS = {"anthropic": "claude-sonnet-5", "openai_chat": "gpt-5.4"}
CONVERSATIONS = 28
LEARNT = 20
"""After so many conversations the way is chosen by what they taught."""
COUNTER = BpeCounter()


def asked(provider: str, number: int) -> dict[str, Any]:
    """The first request of a conversation, each about another tool than those before."""
    body = asking(provider, [f"{list(JOBS.values())[number]}, please"]) | {"model": MODELS[provider]}
    for tool in body["tools"]:
        function = tool.get("function", tool)
        schema = function.get("parameters") or function["input_schema"]
        schema["properties"] = {"what": {"type": "string", "description": WHAT}}
    if provider == "anthropic":
        return body | {"system": [{"type": "text", "text": SYSTEM, "cache_control": {"type": "ephemeral"}}]}
    return body | {"messages": [{"role": "system", "content": SYSTEM}, *body["messages"][1:]]}


async def arrived(provider: str, *ways: str) -> list[dict[str, Any]]:
    """What the provider gets of these conversations, of which it refuses none."""
    parts = {"encoder": FakeEncoder(), "embeddings": MemoryEmbeddings()}
    async with (
        gateway(parts=parts, policy={"k": 1, "ways": ways, "way_back": True}) as door,
        httpx2.AsyncClient(base_url=door.url, trust_env=False, timeout=60) as client,
    ):
        for number in range(CONVERSATIONS):
            answer = await client.post(PATHS[provider], json=asked(provider, number))
            assert answer.status_code == 200, answer.text
            if number == LEARNT - 1:
                await asyncio.sleep(5 * turn_statistics.FLUSH_SECONDS)
        assert door.mock.refused == []
        return [received.json for received in door.mock.received]


def billed(provider: str, bodies: Sequence[dict[str, Any]]) -> float:
    """The bill of those after the first `LEARNT`, ten seconds apart, in tokens of plain input."""
    model = Model.of(MODELS[provider], 300)
    cache = model.cache()
    bills = []
    for number, body in enumerate(bodies):
        parts = [*body["tools"], *body.get("system", ()), *body["messages"]]
        marks = [Mark(block=place) for place, part in enumerate(parts, 1) if "cache_control" in part]
        bills.append(cache.send(prompt(map(block, parts), marks), 10.0 * number).billed(model.prices))
    return sum(bills[LEARNT:])


def block(part: dict[str, Any]) -> Block:
    text = json.dumps({name: value for name, value in part.items() if name != "cache_control"})
    return hash(text), COUNTER.count([text])[0]


@pytest.mark.requirement("design.cache-rule")
@pytest.mark.parametrize(
    ("provider", "way", "other"), [("anthropic", "whole", "tools"), ("openai_chat", "tools", "whole")]
)
async def test_each_providers_prices_choose_what_it_bills_less(
    monkeypatch: pytest.MonkeyPatch, provider: str, way: str, other: str
) -> None:
    monkeypatch.setattr(turn_statistics, "FLUSH_SECONDS", 0.02)
    every = [asked(provider, number) for number in range(CONVERSATIONS)]
    picked = await arrived(provider, "tools")

    chosen = await arrived(provider, "whole", "tools")

    bodies = {"whole": every, "tools": picked}
    assert chosen[LEARNT:] == bodies[way][LEARNT:]
    assert billed(provider, bodies[way]) < billed(provider, bodies[other])
