"""List prices of models, and what requests cost by them."""

from __future__ import annotations

import tomllib
from decimal import Decimal
from importlib.resources import files

import pytest

from pegboard.model_prices import TABLE, ModelPrice, PriceTable, shipped_prices
from pegboard.settings import Settings
from pegboard.token_usage import TokenUsage

PRICE = ModelPrice(
    input=Decimal(4),
    output=Decimal(20),
    cached=Decimal("0.4"),
    written=Decimal(5),
    above=272_000,
    beyond=ModelPrice(input=Decimal(8), output=Decimal(30), cached=Decimal("0.8"), written=Decimal(10)),
)


def test_every_row_has_prices_and_says_where_they_are_from() -> None:
    table = tomllib.loads(files("pegboard").joinpath(TABLE).read_text("utf-8"), parse_float=Decimal)
    names = [name for row in table["row"] for name in row["models"]]

    assert len(names) == len(set(names)) == len(shipped_prices())
    for name, price in shipped_prices().items():
        assert name == name.lower()
        assert price.input > 0
        assert price.output is not None
        assert price.output >= 0
        assert price.source.startswith("https://")
        assert price.checked == table["checked"]
        assert (price.above is None) == (price.beyond is None)


@pytest.mark.requirement("observability.money")
def test_a_model_has_the_price_of_its_own_name_alone() -> None:
    known = PriceTable(shipped_prices())
    sonnet = known.price_of("claude-sonnet-5")

    assert sonnet is not None
    assert (sonnet.input, sonnet.cached, sonnet.written, sonnet.output) == (2, Decimal("0.2"), Decimal("2.5"), 10)
    assert known.price_of("Claude-Sonnet-5") == sonnet
    for unknown in ("claude-sonnet-5-next", "my-claude-sonnet-5", "claude", "", "gpt-99"):
        assert known.price_of(unknown) is None


@pytest.mark.requirement("observability.money")
def test_your_own_price_comes_before_those_that_are_known() -> None:
    prices = {"claude-*": {"input": 1.5, "output": 7.5}, "local-*": 0.25, "claude-sonnet-5": 99.0}
    table = Settings(activity={"prices": prices}).activity.table
    sonnet, local = table.price_of("claude-sonnet-5"), table.price_of("local-llama")

    assert sonnet is not None
    assert local is not None
    assert (sonnet.input, sonnet.output, sonnet.cached) == (Decimal("1.5"), Decimal("7.5"), None)
    assert local.cost(TokenUsage(input=1_000)) is None  # the price of output is not known
    assert local.definitions(1_000) == 250_000
    assert table.price_of("gpt-5.6") == shipped_prices()["gpt-5.6"]


@pytest.mark.requirement("observability.money")
@pytest.mark.parametrize(
    ("used", "usd"),
    [
        (TokenUsage(input=1_000, output=100), 1_000 * 4 + 100 * 20),
        (TokenUsage(input=1_000, cache_read=600, cache_write=300, output=1), 100 * 4 + 600 * 0.4 + 300 * 5 + 20),
        (TokenUsage(input=272_000), 272_000 * 4),
        (TokenUsage(input=272_001, output=10), 272_001 * 8 + 10 * 30),
        (TokenUsage(input=5, cache_read=9), 9 * 0.4),  # a provider that counts cached tokens apart
        (TokenUsage(), 0),
    ],
)
def test_a_request_costs_what_was_counted(used: TokenUsage, usd: float) -> None:
    """``usd`` is in millionths of a dollar."""
    assert PRICE.cost(used) == round(usd * 1_000)


def test_tokens_that_were_counted_without_a_price_of_their_own_cost_as_much_as_others() -> None:
    plain = ModelPrice(input=Decimal(3), output=Decimal(1))

    assert plain.cost(TokenUsage(input=10, cache_read=5, cache_write=5)) == 30_000


def test_definitions_cost_the_mean_price_of_their_prompt() -> None:
    cost = PRICE.prompt(TokenUsage(input=1_000, cache_read=500, output=7))

    assert cost == 1_000 * 2.2 * 1_000
    assert PRICE.definitions(100, 1_000, cost) == round(100 * 2.2 * 1_000)
    assert PRICE.definitions(100, 1_000) == PRICE.definitions(100) == 400_000
    assert PRICE.definitions(-5, 1_000, cost) == 0
