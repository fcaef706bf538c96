"""An agent that stops before its tools run, and another process that goes on: `resumed.py DATABASE begin|resume`."""

from __future__ import annotations

import json
import sys

from langchain.agents import create_agent
from langchain_core.messages import HumanMessage
from langchain_core.tools import tool
from langgraph.checkpoint.sqlite import SqliteSaver

from pegboard.gateways.langchain import ToolAttentionMiddleware
from pegboard.gateways.langchain.scripted_model import ScriptedModel, calls
from pegboard.testing import FakeEncoder

CONFIG = {"configurable": {"thread_id": "1"}}


@tool
def get_tides(harbour: str) -> str:
    """Get the high tide times of a harbour"""
    return f"{harbour}: 16:20"


@tool
def renew_loan(loan: str) -> str:
    """Renew a loan of a library book"""
    return f"{loan} renewed"


def add(x: int, y: int) -> int:
    """Add two numbers"""
    return x + y


def one(name: str, **arguments: object) -> tuple[str, dict[str, object]]:
    return ("call_tool", {"name": name, "arguments": arguments})


def main(database: str, phase: str) -> None:
    wanted = calls(one("get_tides", harbour="Bergen"), one("add", x=1, y=2), one("renew_loan", loan="7"))
    model = ScriptedModel(steps=[wanted] if phase == "begin" else ["done"])
    middleware = ToolAttentionMiddleware(
        [add], rendering="text", profile="attention", k=2, threshold=0.0, encoder=FakeEncoder()
    )
    with SqliteSaver.from_conn_string(database) as saver:
        agent = create_agent(
            model,
            tools=[get_tides, renew_loan],
            middleware=[middleware],
            checkpointer=saver,
            interrupt_before=["tools"] if phase == "begin" else None,
        )
        ask = {"messages": [HumanMessage("Get the high tide times of the harbour, and add two numbers")]}
        out = agent.invoke(ask if phase == "begin" else None, CONFIG)
    middleware.close()
    sent = [[each.type, each.content] for each in model.asked[0].messages]
    said = [[each.status, each.content] for each in out["messages"] if each.type == "tool"]
    print(json.dumps({"sent": sent, "said": said}))


if __name__ == "__main__":
    main(*sys.argv[1:])
