"""What a provider counted of an answer."""

from __future__ import annotations

from dataclasses import dataclass

MOST_TOKENS = 10**12
"""More than any answer has; stores hold the cost of so many."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenUsage:
    """Token counts so far. ``input`` is the whole prompt, including tokens read from and written to the cache.

    A provider may count wrong: a count is never less than 0 or more than `MOST_TOKENS`.

    >>> TokenUsage(input=2**63, output=-1)
    TokenUsage(input=1000000000000, output=0, cache_read=0, cache_write=0)
    """

    input: int = 0
    output: int = 0
    cache_read: int = 0
    cache_write: int = 0

    def __post_init__(self) -> None:
        for name in ("input", "output", "cache_read", "cache_write"):
            object.__setattr__(self, name, min(max(getattr(self, name), 0), MOST_TOKENS))

    def plus(self, more: TokenUsage) -> TokenUsage:
        """The sum of two answers."""
        return TokenUsage(
            input=self.input + more.input,
            output=self.output + more.output,
            cache_read=self.cache_read + more.cache_read,
            cache_write=self.cache_write + more.cache_write,
        )

    @property
    def plain(self) -> int:
        """Tokens of the prompt that the cache had no part in."""
        return max(0, self.input - self.cache_read - self.cache_write)
