from __future__ import annotations

from datetime import date

import pytest

from pegboard.prompt_cache import CachePrices, PriceRow, known_prices, prices_of
from pegboard.settings.llm import Format


@pytest.mark.parametrize(
    ("provider", "model", "read", "write", "ttl", "minimum"),
    [
        ("anthropic", "claude-opus-5-20260701", 0.1, 1.25, 300, 512),
        ("anthropic", "claude-fable-5-1", 0.025, 1.25, 300, 512),
        ("anthropic", "claude-opus-4-7", 0.1, 1.25, 300, 2048),
        ("anthropic", "claude-haiku-4-5-20251001", 0.1, 1.25, 300, 4096),
        ("anthropic", "claude-sonnet-4-5", 0.1, 1.25, 300, 1024),
        ("openai", "gpt-4o-mini", 0.5, 1.0, 300, 1024),
        ("openai", "gpt-4.1", 0.25, 1.0, 300, 1024),
        ("openai", "gpt-5.4", 0.1, 1.0, 300, 1024),
        ("openai", "gpt-5.6-sol", 0.1, 1.25, 1800, 1024),
        ("openai", "gpt-5-pro", 1.0, 1.0, 0, 0),
        ("gemini", "gemini-2.5-pro", 0.1, 1.0, 300, 2048),
        ("gemini", "gemini-3.5-flash", 0.1, 1.0, 300, 4096),
    ],
)
def test_the_table_has_what_providers_publish(
    provider: Format, model: str, read: float, write: float, ttl: float, minimum: int
) -> None:
    prices = prices_of(known_prices(), provider, model)

    assert (prices.read, prices.write, prices.ttl, prices.minimum) == (read, write, ttl, minimum)


def test_an_hour_costs_twice_the_price_of_input_at_anthropic() -> None:
    prices = prices_of(known_prices(), "anthropic", "claude-opus-5", lasting=True)

    assert (prices.read, prices.write, prices.ttl) == (0.1, 2.0, 3600)


def test_a_longer_lifetime_that_is_not_sold_is_the_usual_one() -> None:
    table = known_prices()

    assert prices_of(table, "gemini", "gemini-2.5-pro", lasting=True) == prices_of(table, "gemini", "gemini-2.5-pro")


def test_of_what_is_not_known_every_token_costs_what_it_costs() -> None:
    assert prices_of(known_prices(), "generic", "any") == CachePrices()


def test_a_row_put_before_the_table_outweighs_it() -> None:
    ours = PriceRow(provider="openai", models=("gpt-5.4*",), prices=CachePrices(read=0.05))

    assert prices_of((ours, *known_prices()), "openai", "gpt-5.4-mini").read == 0.05


def test_every_row_says_where_and_when_it_was_read() -> None:
    for row in known_prices():
        assert row.source.startswith("https://")
        assert isinstance(row.checked, date)
        assert 0 < row.prices.read <= 1 <= row.prices.write


def test_only_anthropic_caches_nothing_that_is_not_marked() -> None:
    assert {row.provider for row in known_prices() if not row.prices.automatic} == {"anthropic"}
