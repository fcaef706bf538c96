from __future__ import annotations

from statistics import mean

import pytest

from pegboard_bench.tax import made
from pegboard_bench.tax.phrases import made as requests_of_made


def test_the_servers_of_table_two_have_its_tools_and_its_averages() -> None:
    catalog = made.synthetic()
    tokens = dict(zip((tool.id for tool in catalog.tools), catalog.token_counts, strict=True))

    assert len(catalog) == 120
    for row in made.TABLE_2:
        of_server = [tokens[tool.id] for tool in catalog.of_server(row.server)]
        assert len(of_server) == len(row.verbs) * len(row.nouns)
        assert mean(of_server) == pytest.approx(row.tokens, rel=0.01)
    assert sum(catalog.token_counts) == pytest.approx(48_600, rel=0.001)


def test_the_variant_sums_to_what_the_paper_says() -> None:
    assert sum(made.synthetic(made.ROUNDED_TOTAL).token_counts) == pytest.approx(made.ROUNDED_TOTAL, rel=0.001)


def test_the_same_catalog_is_made_each_time() -> None:
    assert made.synthetic().fingerprint == made.synthetic().fingerprint


def test_a_smaller_catalog_is_the_beginning_of_a_larger_one() -> None:
    small, large = made.many(30), made.many(50)

    assert len(large) == 50
    assert small.tools == large.tools[:30]
    assert sum(large.token_counts) / 50 == pytest.approx(made.MEAN, rel=0.1)


def test_requests_do_not_repeat_what_a_description_says_the_tool_does() -> None:
    catalog = made.synthetic()
    asks, _ = requests_of_made(catalog)

    assert asks.keys() == {tool.id for tool in catalog.tools}
    for tool in catalog.tools:
        verb = tool.description.split()[0].lower()
        assert all(verb not in request.split() for request in asks[tool.id])
