"""The models whose caching is measured, each with its cache and the breakpoints that a careful client sets."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from pegboard.prompt_cache.cache_prices import CachePrices, known_prices, prices_of
from pegboard.settings.llm import Format
from pegboard_bench.cache.automatic import AutomaticCache
from pegboard_bench.cache.marked import MarkedCache
from pegboard_bench.cache.prompts import Mark, Prompt, Usage

LASTING = 3600
MODELS: Mapping[str, Format] = {
    "claude-sonnet-5": "anthropic",
    "claude-haiku-4-5": "anthropic",
    "gpt-5.4": "openai",
    "gpt-5.6": "openai",
    "gemini-2.5-flash": "gemini",
    "gemini-3.5-flash": "gemini",
}
"""Of each provider two whose rules differ: in the shortest prefix that is cached, or in how prefixes are cached."""


class Cache(Protocol):
    def send(self, prompt: Prompt, now: float) -> Usage: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Model:
    name: str
    provider: Format
    prices: CachePrices
    lasting: bool

    @classmethod
    def of(cls, name: str, ttl: int) -> Model:
        """A model with the lifetime that the price table has for about ``ttl`` seconds."""
        provider, lasting = MODELS[name], ttl >= LASTING
        prices = prices_of(known_prices(), provider, name, lasting=lasting)
        return cls(name=name, provider=provider, prices=prices, lasting=lasting)

    def cache(self) -> Cache:
        return MarkedCache(self.prices, self.prices) if self.prices.breakpoints else AutomaticCache(self.prices)

    def marks(self, tools: int, blocks: int) -> Sequence[Mark]:
        """After the system prompt and the last message; at Anthropic also after the tools and the message before."""
        if not self.prices.breakpoints:
            return ()
        own = set() if self.prices.automatic else {tools, max(blocks - 2, tools + 1)}
        wanted = sorted({tools + 1, blocks, *own} - {0})
        return [Mark(block=block, lasting=self.lasting) for block in wanted]
