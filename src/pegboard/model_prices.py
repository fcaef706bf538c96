"""What models cost: a table of list prices with its source, and the cost of what a provider counted.

The package contains `model_prices.toml`, which `scripts/model_prices.py` writes. A model that it does not name has no
price: none is guessed from a similar name.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date
from decimal import Decimal
from fnmatch import fnmatchcase
from functools import cache
from importlib.resources import files
from typing import Any

from pegboard.spend_limits import NanoUsd, nano_usd
from pegboard.token_usage import TokenUsage

TABLE = "model_prices.toml"
MILLION = 1_000_000
BILLION = 1_000_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelPrice:
    """US dollars per million tokens. Without a price of their own, ``cached`` tokens (read from the provider's prompt
    cache) and ``written`` ones cost as much as ``input``.

    Without a price of ``output``, what a request cost is not known. ``beyond`` is the price of a whole request whose
    prompt has more than ``above`` tokens; each prompt of a request that had several is priced by its own length.
    """

    input: Decimal
    output: Decimal | None = None
    cached: Decimal | None = None
    written: Decimal | None = None
    above: int | None = None
    beyond: ModelPrice | None = None
    source: str = ""
    checked: date | None = None

    def of(self, prompt: int) -> ModelPrice:
        """The price of a request with a prompt of so many tokens."""
        return self.beyond if self.beyond is not None and self.above is not None and prompt > self.above else self

    def cost(self, used: TokenUsage) -> NanoUsd | None:
        """What the provider charges, rounded up to a billionth of a dollar; None if that is not known.

        >>> price = ModelPrice(input=Decimal(2), cached=Decimal("0.2"), output=Decimal(10))
        >>> price.cost(TokenUsage(input=1_000, cache_read=900, output=50))
        880000
        """
        total = Decimal(0)
        for each in used.prompts:
            price = self.of(each.input)
            if price.output is None:
                return None
            total += price._prompt(each) + each.output * price.output
        return nano_usd(total / MILLION)

    def prompt(self, used: TokenUsage) -> NanoUsd:
        """What the provider charges for the input alone."""
        return nano_usd(sum((self.of(each.input)._prompt(each) for each in used.prompts), Decimal(0)) / MILLION)

    def definitions(self, tokens: int, prompt: int = 0, prompt_cost: NanoUsd | None = None) -> NanoUsd:
        """The price of tokens of tool definitions: each at the mean price of the ``prompt`` that they are a part of, of
        so many tokens. If nothing is known of it, at the price of plain input."""
        if not prompt or prompt_cost is None:
            return nano_usd(max(0, tokens) * self.input / MILLION)
        return nano_usd(max(0, tokens) * Decimal(prompt_cost) / prompt / BILLION)

    def _prompt(self, used: TokenUsage) -> Decimal:
        cached = self.input if self.cached is None else self.cached
        written = self.input if self.written is None else self.written
        return used.plain * self.input + used.cache_read * cached + used.cache_write * written


@dataclass(frozen=True, slots=True)
class PriceTable:
    """Prices by the names of models; ``own`` rows by patterns on them, which come first and in this order."""

    known: Mapping[str, ModelPrice] = field(default_factory=dict)
    own: Sequence[tuple[str, ModelPrice]] = ()

    def price_of(self, model: str) -> ModelPrice | None:
        """None: no price is known."""
        for pattern, price in self.own:
            if fnmatchcase(model, pattern):
                return price
        return self.known.get(model.lower())


NO_PRICES = PriceTable()


@cache
def shipped_prices() -> Mapping[str, ModelPrice]:
    """The table of the package, by the names of models in lower case."""
    text = files("pegboard").joinpath(TABLE).read_text("utf-8")
    table = tomllib.loads(text, parse_float=Decimal)
    return {name: _price(row, table["checked"]) for row in table["row"] for name in row["models"]}


def _price(row: Mapping[str, Any], checked: date) -> ModelPrice:
    beyond = _amounts(row["beyond"]) if "beyond" in row else None
    return replace(_amounts(row), above=row.get("above"), beyond=beyond, source=row["source"], checked=checked)


def _amounts(row: Mapping[str, Any]) -> ModelPrice:
    found = {name: Decimal(row[name]) for name in ("input", "output", "cached", "written") if name in row}
    return ModelPrice(
        input=found["input"], output=found["output"], cached=found.get("cached"), written=found.get("written")
    )
