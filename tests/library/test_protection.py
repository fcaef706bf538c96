"""A board never takes away what makes an agent an agent."""

from __future__ import annotations

from typing import Any

import pytest

from pegboard import Board
from pegboard.testing import FakeEncoder
from unknown_agents import OFFICE

CATALOG: list[dict[str, Any]] = [{"name": name, "description": text} for name, text in OFFICE.items()]
OWN = ("transfer_to_billing", "write_todos", "final_answer", "ask_user")


@pytest.mark.requirement("A2")
@pytest.mark.parametrize("ask", ["How many shipments are late?", "Delete the campaign", "continue"])
def test_handoffs_planning_questions_and_exits_are_there_in_every_turn(ask: str) -> None:
    with Board([*CATALOG, *({"name": name} for name in OWN)], encoder=FakeEncoder(), k=3) as board:
        decision = board.route_now(ask)

    assert {tool.name for tool in decision.active} >= set(OWN)
    assert len(decision.active) <= 3 + len(OWN)
    assert [tool.name for tool in decision.tools] == [tool.name for tool in decision.active]


@pytest.mark.requirement("A2")
def test_a_protected_tool_that_the_caller_may_not_use_stays_out() -> None:
    rules = [{"tools": "local/transfer_to_billing", "requires": ["is_authenticated:billing"]}]
    with Board([*CATALOG, {"name": "transfer_to_billing"}], encoder=FakeEncoder(), k=3, rules=rules) as board:
        decision = board.route_now("Delete the campaign")

    assert "transfer_to_billing" not in {tool.name for tool in decision.active}
