"""What conversations are billed by a provider's rules of prompt caching: the caches of `bench/cache`, real requests."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal

from pegboard.bench.cache.automatic import AutomaticCache
from pegboard.bench.cache.marked import MarkedCache
from pegboard.bench.cache.prompts import Mark, Prompt, prompt
from pegboard.bench.cache.providers import Cache
from pegboard.bench.coding_agents.agents import Agent
from pegboard.bench.coding_agents.reading import blocks
from pegboard.catalog import BpeCounter
from pegboard.prompt_cache.prices import CachePrices, known_prices, prices_of

Rhythm = Literal["apart", "close"]
"""Conversations that begin when nothing of the one before is cached any more, or a minute after it."""
BETWEEN_REQUESTS = 10.0
BETWEEN_CONVERSATIONS: Mapping[Rhythm, float] = {"apart": 86_400.0, "close": 60.0}
COUNTER = BpeCounter()


def prices(agent: Agent) -> CachePrices:
    return prices_of(known_prices(), agent.format, agent.model)


def billed(agent: Agent, conversations: Sequence[Sequence[Mapping[str, Any]]], rhythm: Rhythm) -> float:
    """The input of all requests, in tokens of plain input."""
    price = prices(agent)
    cache: Cache = MarkedCache(price) if price.breakpoints else AutomaticCache(price)
    total, begins = 0.0, 0.0
    for requests in conversations:
        for number, body in enumerate(requests):
            usage = cache.send(_prompt(body, price), begins + number * BETWEEN_REQUESTS)
            total += usage.billed(price)
        begins += BETWEEN_CONVERSATIONS[rhythm] + len(requests) * BETWEEN_REQUESTS
    return total


def tokens(body: Mapping[str, Any]) -> int:
    return sum(COUNTER.count(blocks(body)[0]))


def _prompt(body: Mapping[str, Any], price: CachePrices) -> Prompt:
    """Where the provider marks by itself, the end of the request is marked."""
    texts, marks = blocks(body)
    if price.breakpoints and price.automatic and not marks:
        marks = [Mark(block=len(texts))]
    sizes = COUNTER.count(texts)
    return prompt(((hash(text), size) for text, size in zip(texts, sizes, strict=True)), marks)
