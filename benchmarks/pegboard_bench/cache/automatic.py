"""Prompt caches that keep every prefix by themselves: OpenAI's before GPT-5.6, and Gemini's implicit one.

OpenAI, developers.openai.com/api/docs/guides/prompt-caching, read 2026-11-22 (earlier models): prompts of 1,024 tokens
and more; what is reported as cached is a multiple of 128; no price for writing; entries stay 5 to 10 minutes after
their last use, an hour at most, longer with `prompt_cache_retention`. A request goes to the machine that the beginning
of its prompt leads to; above 15 requests a minute some go to another one, which has not seen the prefix.

Gemini, ai.google.dev/gemini-api/docs/caching, read 2026-11-22: implicit caching from the model's minimum on, cached
tokens at a tenth, no price for writing, and no promise: how long entries stay is not said. (Explicit caches, which a
request names, are for their makers.)
"""

from __future__ import annotations

from collections import defaultdict, deque

from pegboard.prompt_cache.cache_prices import CachePrices
from pegboard_bench.cache.prompts import Prompt, Usage

MINUTE = 60.0


class AutomaticCache:
    """One organisation's entries with one model; ``per_minute`` requests at most find the machine of their prefix.

    Prefixes are compared block by block: tokens that differing blocks begin with in common are not counted.
    """

    def __init__(self, prices: CachePrices, per_minute: int | None = None) -> None:
        self._prices = prices
        self._per_minute = per_minute
        self._used: dict[int, dict[int, float]] = defaultdict(dict)
        self._lately: dict[int, deque[float]] = defaultdict(deque)

    def send(self, prompt: Prompt, now: float) -> Usage:
        """What a request at ``now``, in seconds, is billed."""
        if prompt.tokens < self._prices.minimum:
            return Usage(plain=prompt.tokens)
        used = self._used[self._machine(prompt, now)]
        read = self._hit(prompt, used, now)
        used.update(dict.fromkeys(prompt.prefixes, now))
        return Usage(read=read, plain=prompt.tokens - read)

    def _hit(self, prompt: Prompt, used: dict[int, float], now: float) -> int:
        earliest = now - self._prices.ttl
        for prefix, end in zip(reversed(prompt.prefixes), reversed(prompt.ends), strict=True):
            if used.get(prefix, -self._prices.ttl) > earliest:
                cached = end - end % self._prices.step
                return cached if cached >= self._prices.minimum else 0
        return 0

    def _machine(self, prompt: Prompt, now: float) -> int:
        """By the prompt's first block, and by how many came before it within a minute."""
        first = prompt.prefixes[0]
        if self._per_minute is None:
            return 0
        lately = self._lately[first]
        while lately and lately[0] <= now - MINUTE:
            lately.popleft()
        lately.append(now)
        return hash((first, (len(lately) - 1) // self._per_minute))
