from __future__ import annotations

from typing import Any

from pegboard_bench.control_tools.__main__ import figures_of
from pegboard_bench.control_tools.measure import CATALOG, FRAMEWORKS, PROGRAMS, TOOLS, Outcome, Run
from pegboard_bench.control_tools.page import section


def request(agent: str, *tools: str, required: bool = False) -> dict[str, Any]:
    return {"agent": agent, "tools": list(tools), "required": required}


def run(*requests: dict[str, Any], ended: bool = True) -> Run:
    return Run(asks=[{"ask": "…", "ended": ended, "said": ""}], requests=requests, refused=[])


DIRECT = run(
    request("clerk", "get_invoice", "list_invoice", "transfer_to_shipping", required=True),
    request("shipping", "get_shipment", "transfer_back"),
)


def test_a_control_tool_is_dropped_where_its_own_agent_lacks_it() -> None:
    through = run(
        request("clerk", "get_invoice", "transfer_to_shipping", required=True),
        request("clerk", "get_invoice"),
        request("shipping", "get_shipment", "transfer_back"),
        ended=False,
    )
    of = Outcome(direct=DIRECT, through=through).table()

    assert of["control"] == ["transfer_back", "transfer_to_shipping"]
    assert (of["dropped"], of["dropped_names"]) == (1, ["transfer_to_shipping"])
    assert (of["requests"], of["filtered"], of["required"]) == (3, 2, 1)
    assert (of["not_ended"], of["not_ended_directly"], of["unknown_agents"]) == (1, 0, 0)


def test_tools_of_the_catalog_may_go_and_agents_that_nobody_knows_are_counted() -> None:
    of = Outcome(direct=DIRECT, through=run(request("somebody", "get_invoice"))).table()

    assert (of["dropped"], of["unknown_agents"]) == (0, 1)


def test_the_catalog_is_that_of_the_programs_and_every_framework_has_one() -> None:
    names = (PROGRAMS / "catalog.py").read_text()

    assert len(CATALOG) == TOOLS
    assert all(f'"{name.partition("_")[2]}"' in names for name in CATALOG)
    assert all((PROGRAMS / each.program).exists() for each in FRAMEWORKS.values())


def results() -> dict[str, Any]:
    protected = Outcome(direct=DIRECT, through=DIRECT).table()
    lost = Outcome(direct=DIRECT, through=run(request("clerk", "get_invoice", required=True), ended=False)).table()
    return {
        "command": "make bench-control-tools",
        "date": "2026-11-23T00:00:00+00:00",
        "commit": "0" * 40,
        "machine": {"cpu": "some", "cores": 2, "python": "3.11", "platform": "Linux"},
        "versions": {},
        "figures": {},
        "tables": {
            "frameworks": {"smolagents": {"default": protected, "tools": protected, "unprotected": lost}},
            "asks": 12,
            "tools": 60,
        },
    }


def test_the_page_has_a_row_for_each_framework_and_what_the_control_lost() -> None:
    page = section(results())

    assert "| `transfer_back`, `transfer_to_shipping` | 4 | 2 | 0, 0 | 0 of 4 | 0 of 2 | 1 of 1 | 1 of 1 |" in page
    assert "0 of 4 control tools were dropped and 0 of 2 loops did not end" in page


def test_figures_of_the_control_are_apart() -> None:
    figures = figures_of(results()["tables"]["frameworks"])

    assert (figures["dropped/smolagents"], figures["dropped_unprotected/smolagents"]) == (0, 1)
    assert (figures["loops_not_ended/smolagents"], figures["loops_not_ended_unprotected/smolagents"]) == (0, 1)
