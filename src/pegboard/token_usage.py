"""What a provider counted of an answer."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenUsage:
    """Token counts so far. ``input`` is the whole prompt, including tokens read from and written to the cache."""

    input: int = 0
    output: int = 0
    cache_read: int = 0
    cache_write: int = 0

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
