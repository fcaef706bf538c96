"""Cache prices by provider and model, relative to a plain input token.

The package contains `prices.toml`; each row names its source and the day it was read.
"""

from __future__ import annotations

import tomllib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import date
from fnmatch import fnmatchcase
from functools import cache
from importlib.resources import files
from typing import Any, TypeAlias

from pegboard.settings.llm import Format

TABLE = "prices.toml"


@dataclass(frozen=True, slots=True, kw_only=True)
class CachePrices:
    """Prices in plain input tokens: r to read a cached token, w to write one; the lifetime in seconds.

    A prefix shorter than ``minimum`` tokens is not cached. Hits are whole multiples of ``step`` tokens. If
    ``breakpoints`` is not zero, entries end only at breakpoints, of which there may be at most that many; zero means
    that entries end anywhere. ``automatic``: the provider also caches without breakpoints. ``allowed_tools``: a request
    may restrict which of its tools can be called now.
    """

    read: float = 1.0
    write: float = 1.0
    ttl: float = 0.0
    minimum: int = 0
    step: int = 1
    breakpoints: int = 0
    automatic: bool = True
    allowed_tools: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class PriceRow:
    """Models of a provider by name patterns; ``lasting`` are the prices of the longer lifetime, if there is one."""

    provider: Format
    models: tuple[str, ...]
    prices: CachePrices
    lasting: CachePrices | None = None
    source: str = ""
    checked: date | None = None

    def fits(self, provider: Format, model: str) -> bool:
        return provider == self.provider and any(fnmatchcase(model.lower(), pattern) for pattern in self.models)


PriceTable: TypeAlias = Sequence[PriceRow]
UNCACHED = CachePrices()
"""Without a known cache, each token costs 1."""


@cache
def known_prices() -> tuple[PriceRow, ...]:
    """The bundled table; earlier rows take precedence."""
    document = tomllib.loads(files(__package__).joinpath(TABLE).read_text("utf-8"))
    return tuple(_row(fields) for fields in document["row"])


def prices_of(table: PriceTable, provider: Format, model: str, *, lasting: bool = False) -> CachePrices:
    """The prices of the first matching row, with the longer lifetime if it is requested and offered.

    >>> prices_of(known_prices(), "anthropic", "claude-sonnet-4-5", lasting=True).write
    2.0
    """
    row = next((row for row in table if row.fits(provider, model)), None)
    if row is None:
        return UNCACHED
    return (lasting and row.lasting) or row.prices


def _row(fields: dict[str, Any]) -> PriceRow:
    prices = CachePrices(**fields["prices"])
    lasting = replace(prices, **fields["lasting"]) if "lasting" in fields else None
    return PriceRow(
        provider=fields["provider"],
        models=tuple(fields["models"]),
        prices=prices,
        lasting=lasting,
        source=fields["source"],
        checked=fields["checked"],
    )
