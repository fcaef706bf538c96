"""What a request names is among the tools of its turn, with the encoder of the package."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from pegboard import Board
from unknown_agents import OFFICE


@pytest.fixture(scope="module")
def board() -> Iterator[Board]:
    tools = [{"name": name, "description": text, "parameters": {"type": "object"}} for name, text in OFFICE.items()]
    with Board(tools) as found:
        yield found


@pytest.mark.requirement("A6")
@pytest.mark.parametrize(
    ("ask", "named"),
    [
        (
            "Get invoice 7 and the customer record of Acme, then create a ticket about it.",
            ["get_invoice", "get_customer", "create_ticket"],
        ),
        (
            "Create a campaign, a dashboard for it and a calendar event for the launch.",
            ["create_campaign", "create_dashboard", "create_calendar_event"],
        ),
        (
            "Fetch the payroll run, the employee list and delete the old contract.",
            ["get_payroll_run", "list_employee", "delete_contract"],
        ),
        (
            "Delete the dashboard and list all campaigns and tickets.",
            ["delete_dashboard", "list_campaign", "list_ticket"],
        ),
        ("Call update_shipment for the customer", ["update_shipment"]),
    ],
)
def test_every_object_that_a_request_names_has_its_tool(board: Board, ask: str, named: list[str]) -> None:
    active = [tool.name for tool in board.route_now(ask).active]

    assert set(named) <= set(active)
    assert len(active) <= 10
