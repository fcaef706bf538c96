"""Prompt caches whose entries end where a request marks them: Anthropic's, and OpenAI's since GPT-5.6.

Anthropic, platform.claude.com/docs/en/build-with-claude/prompt-caching, read 2026-11-22:

- an entry is written at a breakpoint only, and is the whole prefix (tools, system, messages) up to it; at most four;
- a request looks for entries from each breakpoint backwards, the last one first, at 20 positions each, the breakpoint
  itself being the first; the longest prefix that is found is read;
- a prefix shorter than the model's minimum is neither written nor read;
- lifetimes count from the last use; those that are longer come first;
- billed are: reading up to the highest hit A, writing from A to the last breakpoint of an hour B, and from there to the
  last breakpoint C; what follows is plain input.

OpenAI, developers.openai.com/api/docs/guides/prompt-caching, read 2026-11-22: since GPT-5.6 entries end at the newest
message that may carry one and at explicit breakpoints, four at most; up to 20 earlier ends of messages are looked at;
1,024 tokens at least; half an hour since the last use; writes cost 1.25, reads 0.1.
"""

from __future__ import annotations

from pegboard.prompt_cache.cache_prices import CachePrices
from pegboard_bench.cache.prompts import Mark, Prompt, Usage

MOST_MARKS = 4
POSITIONS = 20


class MarkedCache:
    """One organisation's entries with one model. An entry can be read by the request right after."""

    def __init__(self, prices: CachePrices, lasting: CachePrices | None = None) -> None:
        self._prices = prices
        self._lasting = lasting or prices
        self._entries: dict[int, tuple[float, float]] = {}

    def send(self, prompt: Prompt, now: float) -> Usage:
        """What a request at ``now``, in seconds, is billed. Raises ValueError for breakpoints that are refused."""
        _check(prompt)
        marks = [mark for mark in prompt.marks if prompt.ends[mark.block - 1] >= self._prices.minimum]
        hit = self._hit(prompt, marks, now)
        for mark in marks:
            self._use(prompt.prefixes[mark.block - 1], mark, above=mark.block > hit, now=now)
        read = prompt.ends[hit - 1] if hit else 0
        hour = max((prompt.ends[mark.block - 1] for mark in marks if mark.lasting), default=0)
        last = max((prompt.ends[mark.block - 1] for mark in marks), default=0)
        hour, last = max(hour, read), max(last, read)
        return Usage(read=read, lasting=hour - read, written=max(last - hour, 0), plain=prompt.tokens - max(last, hour))

    def _hit(self, prompt: Prompt, marks: list[Mark], now: float) -> int:
        """The number of blocks that are read; 0: none."""
        for mark in reversed(marks):
            for block in range(mark.block, max(mark.block - POSITIONS, 0), -1):
                if prompt.ends[block - 1] < self._prices.minimum:
                    break
                if self._alive(prompt.prefixes[block - 1], now):
                    self._refresh(prompt.prefixes[block - 1], now)
                    return block
        return 0

    def _use(self, prefix: int, mark: Mark, *, above: bool, now: float) -> None:
        """Above the hit an entry is written; below it, one that is alive was used too."""
        if above:
            self._entries[prefix] = (now, self._lasting.ttl if mark.lasting else self._prices.ttl)
        elif self._alive(prefix, now):
            self._refresh(prefix, now)

    def _alive(self, prefix: int, now: float) -> bool:
        used, lifetime = self._entries.get(prefix, (0.0, -1.0))
        return now - used < lifetime

    def _refresh(self, prefix: int, now: float) -> None:
        self._entries[prefix] = (now, self._entries[prefix][1])


def _check(prompt: Prompt) -> None:
    if len(prompt.marks) > MOST_MARKS:
        raise ValueError(f"{len(prompt.marks)} breakpoints: a request has at most {MOST_MARKS}")
    lasting = [mark.lasting for mark in prompt.marks]
    if sorted(lasting, reverse=True) != lasting:
        raise ValueError("A breakpoint with the longer lifetime stands after a shorter one")
