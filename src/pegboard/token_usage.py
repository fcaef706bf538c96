"""What a provider counted of an answer."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import reduce

MOST_TOKENS = 10**12
"""More than any answer has; stores hold the cost of so many."""
COUNTS = ("input", "output", "cache_read", "cache_write")


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenUsage:
    """Token counts so far. ``input`` is the whole prompt, including tokens read from and written to the cache.

    A provider may count wrong: a count is never less than 0 or more than `MOST_TOKENS`. ``apart`` are those parts of
    the counts that had prompts of their own.

    >>> TokenUsage(input=2**63, output=-1)
    TokenUsage(input=1000000000000, output=0, cache_read=0, cache_write=0)
    """

    input: int = 0
    output: int = 0
    cache_read: int = 0
    cache_write: int = 0
    apart: tuple[TokenUsage, ...] = field(default=(), compare=False, repr=False)

    def __post_init__(self) -> None:
        for name in COUNTS:
            object.__setattr__(self, name, min(max(getattr(self, name), 0), MOST_TOKENS))

    def plus(self, more: TokenUsage) -> TokenUsage:
        """The sum of two answers."""
        return TokenUsage(
            input=self.input + more.input,
            output=self.output + more.output,
            cache_read=self.cache_read + more.cache_read,
            cache_write=self.cache_write + more.cache_write,
            apart=self.apart + more.apart,
        )

    @property
    def prompts(self) -> tuple[TokenUsage, ...]:
        """The counts by prompt.

        >>> part = TokenUsage(input=5, output=1)
        >>> TokenUsage(input=2, output=3).plus(TokenUsage(input=5, output=1, apart=(part,))).prompts[1]
        TokenUsage(input=2, output=3, cache_read=0, cache_write=0)
        """
        if not self.apart:
            return (self,)
        others = reduce(TokenUsage.plus, self.apart)
        return (*self.apart, TokenUsage(**{name: getattr(self, name) - getattr(others, name) for name in COUNTS}))

    @property
    def plain(self) -> int:
        """Tokens of the prompt that the cache had no part in."""
        return max(0, self.input - self.cache_read - self.cache_write)
