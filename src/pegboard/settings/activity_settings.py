"""Options of the activity that the dashboard shows."""

from __future__ import annotations

from decimal import Decimal
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

from pegboard.cached_property import cached_property
from pegboard.model_prices import ModelPrice, PriceTable, shipped_prices
from pegboard.settings.limit_settings import Usd


class OwnPriceSettings(BaseModel):
    """What a model costs, US dollars per million tokens. Without a price of ``output``, requests have no cost, and only
    definitions of tools are priced; ``cached`` and ``written`` tokens cost as much as ``input`` unless given."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    input: Usd
    output: Usd | None = None
    cached: Usd | None = None
    written: Usd | None = None

    @property
    def price(self) -> ModelPrice:
        given = {name: None if value is None else Decimal(str(value)) for name, value in self}
        return ModelPrice(
            input=Decimal(str(self.input)), output=given["output"], cached=given["cached"], written=given["written"]
        )


class ActivitySettings(BaseModel):
    """Where `pegboard serve` keeps its decisions: ``keep`` the last ``most`` of them in its `memory`, all of them in
    the `store` of the state for as long as the retention says, or none (`off`).

    ``texts`` keeps the texts that tools were chosen for, which users wrote. ``prices`` are your own prices by patterns
    on a model's name, before those that Pegboard knows; the first match counts, and a number is a price of input.
    Changes of ``keep`` and ``most`` apply at the next start.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", ignored_types=(cached_property,))

    keep: Literal["memory", "store", "off"] = "memory"
    texts: bool = False
    most: int = Field(default=2_000, ge=1, le=1_000_000)
    prices: dict[str, OwnPriceSettings | Usd] = Field(default_factory=dict)

    @cached_property
    def table(self) -> PriceTable:
        """Your own prices, and those of the package."""
        own = {
            pattern: each if isinstance(each, OwnPriceSettings) else OwnPriceSettings(input=each)
            for pattern, each in self.prices.items()
        }
        return PriceTable(shipped_prices(), [(pattern, each.price) for pattern, each in own.items()])
