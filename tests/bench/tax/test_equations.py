from __future__ import annotations

import pytest

from pegboard.catalog import BpeCounter, Catalog
from pegboard.model import Server, ServerName
from pegboard.testing import fake_tool
from pegboard_bench.tax import equations
from pegboard_bench.tax.testbeds import testbed as bed_of


@pytest.mark.requirement("000.eq1")
def test_the_parts_of_a_tools_cost_are_its_name_description_and_schema() -> None:
    tool = fake_tool("find", "Finds what was lost", schema={"type": "object"})
    cost = equations.cost(tool)

    assert [cost.name, cost.description, cost.schema] == BpeCounter().count(
        ["find", "Finds what was lost", '{"type":"object"}']
    )
    assert (cost.output, cost.whole) == (0, cost.name + cost.description + cost.schema)


@pytest.mark.requirement("000.eq2")
def test_the_tax_of_a_session_is_its_turns_times_all_tools() -> None:
    assert equations.session_tax([395] * 120, turns=30) == 1_422_000


@pytest.mark.requirement("000.eq2")
def test_alpha_is_where_the_approximation_is_exact() -> None:
    tools = [fake_tool(f"find_{number}", "x" * number * 40) for number in range(5)]
    catalog = Catalog.build([(Server(name=ServerName("fake")), tools)])
    letters = sum(len(tool.description) for tool in tools)

    assert equations.alpha(catalog) * 5 + letters / 4 == pytest.approx(sum(catalog.token_counts))


@pytest.mark.requirement("000.eq3")
@pytest.mark.parametrize(("tax", "rho"), [(47_312, 0.24), (11_865, 0.56), (4_082, 0.78)])
def test_with_the_task_that_is_assumed_the_papers_own_rows_come_out(tax: int, rho: float) -> None:
    assert equations.utilization(tax) == pytest.approx(rho, abs=0.01)


@pytest.mark.requirement("000.eq3")
def test_the_cumulative_form_has_everything_that_was_sent() -> None:
    assert equations.cumulative_utilization([10_000, 5_000], task=15_000, system=0) == 0.5
    assert equations.utilization(0, task=1, system=1) == 0.5


def test_the_servers_of_a_catalog_sum_to_it() -> None:
    catalog = bed_of("recorded", None).catalog
    servers = equations.servers(catalog)

    assert sum(of["tokens"] for of in servers.values()) == sum(catalog.token_counts)
    assert sum(of["tools"] for of in servers.values()) == len(catalog)
