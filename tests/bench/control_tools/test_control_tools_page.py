from __future__ import annotations

from typing import Any

from pegboard.bench.control_tools.measuring import CATALOG, FRAMEWORKS, PROGRAMS, TOOLS, Outcome, Run
from pegboard.bench.control_tools.page import section


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


def test_the_page_has_a_row_for_each_framework() -> None:
    table = Outcome(direct=DIRECT, through=DIRECT).table()
    results = {
        "command": "make bench-control-tools",
        "date": "2026-11-23T00:00:00+00:00",
        "commit": "0" * 40,
        "machine": {"cpu": "some", "cores": 2, "python": "3.11", "platform": "Linux"},
        "versions": {},
        "figures": {"dropped/smolagents": 0.0, "loops_not_ended/smolagents": 0.0},
        "tables": {"frameworks": {"smolagents": {"default": table, "tools": table}}, "asks": 12, "tools": 60},
    }

    assert "| smolagents | `transfer_back`, `transfer_to_shipping` | 4 | 2 | 0, 0 | 0 | 0 of 24 |" in section(results)
