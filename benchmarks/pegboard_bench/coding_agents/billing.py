"""What conversations are billed by a provider's rules of prompt caching: the caches of `bench/cache`, real requests."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any, Literal

from pegboard.catalog import BpeCounter
from pegboard.prompt_cache.cache_prices import CachePrices, known_prices, prices_of
from pegboard_bench.cache.automatic import AutomaticCache
from pegboard_bench.cache.marked import MarkedCache
from pegboard_bench.cache.prompts import Mark, Prompt, prompt
from pegboard_bench.cache.providers import Cache
from pegboard_bench.coding_agents.agents import Agent
from pegboard_bench.coding_agents.request_view import blocks

Rhythm = Literal["apart", "close"]
"""Conversations that begin when nothing of the one before is cached any more, or a minute after it."""
BETWEEN_REQUESTS = 10.0
BETWEEN_CONVERSATIONS: Mapping[Rhythm, float] = {"apart": 86_400.0, "close": 60.0}
COUNTER = BpeCounter()


@cache
def _size(text: str) -> int:
    """In tokens. Requests repeat most of what those before them said."""
    return COUNTER.count([text])[0]


def prices(agent: Agent) -> CachePrices:
    return prices_of(known_prices(), agent.format, agent.model)


def billed(agent: Agent, conversations: Sequence[Sequence[Mapping[str, Any]]], rhythm: Rhythm) -> float:
    """The input of all requests, in tokens of plain input."""
    price = prices(agent)
    entries: Cache = MarkedCache(price) if price.breakpoints else AutomaticCache(price)
    total, begins = 0.0, 0.0
    for requests in conversations:
        for number, body in enumerate(requests):
            usage = entries.send(_prompt(body, price), begins + number * BETWEEN_REQUESTS)
            total += usage.billed(price)
        begins += BETWEEN_CONVERSATIONS[rhythm] + len(requests) * BETWEEN_REQUESTS
    return total


def tokens(body: Mapping[str, Any]) -> int:
    return sum(map(_size, blocks(body)[0]))


def _prompt(body: Mapping[str, Any], price: CachePrices) -> Prompt:
    """Where the provider marks by itself, the end of the request is marked."""
    texts, marks = blocks(body)
    if price.breakpoints and price.automatic and not marks:
        marks = [Mark(block=len(texts))]
    return prompt(((hash(text), _size(text)) for text in texts), marks)
