"""The tools tax: what tool definitions cost in tokens and money. Pure sums."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from pegboard.catalog import BpeCounter, Catalog, canonical_text

WINDOW = 200_000
"""Tokens of context that a share is a share of."""
TURNS = 30
"""Turns of a session."""
MILLION = 1_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Price:
    """``input`` is USD per million input tokens; ``read`` and ``write`` are multiples of it for the prompt cache."""

    input: float = 3.0
    read: float = 0.1
    write: float = 1.25

    def turn(self, tokens: float) -> float:
        """USD a turn without a cache."""
        return tokens * self.input / MILLION

    def session(self, tokens: float) -> float:
        """USD for a session without a cache."""
        return TURNS * self.turn(tokens)

    def cached_session(self, tokens: float) -> float:
        """USD for a session whose first turn writes the cache and whose other turns read it."""
        return self.turn(tokens) * (self.write + (TURNS - 1) * self.read)


@dataclass(frozen=True, slots=True, kw_only=True)
class Tax:
    """What the tools of one server, or of all, put into every request."""

    name: str
    tools: int
    tokens: int
    o200k: int
    largest: str
    largest_tokens: int

    @property
    def mean(self) -> float:
        return self.tokens / self.tools if self.tools else 0.0

    @property
    def share(self) -> float:
        """Of the context window."""
        return self.tokens / WINDOW


def taxes(catalog: Catalog) -> list[Tax]:
    """One a server, the most expensive first."""
    o200k = BpeCounter("o200k_base").count([canonical_text(tool) for tool in catalog.tools])
    rows: Mapping[str, list[tuple[int, int, str]]] = {name: [] for name in catalog.servers}
    for tool, tokens, other in zip(catalog.tools, catalog.token_counts, o200k, strict=True):
        rows[tool.server].append((tokens, other, tool.name))
    return sorted((_tax(name, of_server) for name, of_server in rows.items()), key=lambda tax: -tax.tokens)


def total(taxes: Iterable[Tax]) -> Tax:
    every = list(taxes)
    largest = max(every, key=lambda tax: tax.largest_tokens, default=None)
    return Tax(
        name="total",
        tools=sum(tax.tools for tax in every),
        tokens=sum(tax.tokens for tax in every),
        o200k=sum(tax.o200k for tax in every),
        largest=f"{largest.name}/{largest.largest}" if largest else "",
        largest_tokens=largest.largest_tokens if largest else 0,
    )


def _tax(name: str, rows: list[tuple[int, int, str]]) -> Tax:
    largest_tokens, _, largest = max(rows, default=(0, 0, ""))
    return Tax(
        name=name,
        tools=len(rows),
        tokens=sum(tokens for tokens, _, _ in rows),
        o200k=sum(other for _, other, _ in rows),
        largest=largest,
        largest_tokens=largest_tokens,
    )


def cost(price: Price, tokens: float) -> dict[str, float]:
    """USD, as the audit prints them."""
    return {
        "turn": round(price.turn(tokens), 6),
        "session": round(price.session(tokens), 6),
        "session_cached": round(price.cached_session(tokens), 6),
    }
