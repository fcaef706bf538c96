"""The middleware shows the model its handoffs and its plan, whatever a turn is about."""

from __future__ import annotations

import pytest
from langchain_core.messages import HumanMessage
from langchain_core.tools import StructuredTool

from pegboard.gateways.langchain import ToolAttention
from pegboard.gateways.langchain.attention import Request
from pegboard.testing import FakeEncoder
from unknown_agents import OFFICE


def tool(name: str, text: str) -> StructuredTool:
    return StructuredTool.from_function(lambda: "done", name=name, description=text)


@pytest.mark.requirement("A2")
def test_an_agents_handoffs_and_todos_are_never_hidden() -> None:
    own = [
        tool("transfer_to_billing", "Hand over to the billing agent"),
        tool("write_todos", "Keep a list of the work"),
    ]
    attention = ToolAttention(encoder=FakeEncoder(), k=3)
    messages = [HumanMessage("How many shipments are late?", id="1")]
    tools = [*(tool(name, text) for name, text in OFFICE.items()), *own]
    try:
        request = attention.before_model({"messages": messages}, Request(messages=messages, tools=tools))
    finally:
        attention.board.close()

    assert {each.name for each in own} <= {each.name for each in request.tools}
    assert len(request.tools) <= 5 + 1  # the search for the others
