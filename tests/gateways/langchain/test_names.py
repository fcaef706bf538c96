"""Tools and arguments may be called what they like, and what LangChain injects stays injected."""

from __future__ import annotations

from typing import Any

import pytest
from langchain_core.tools import tool

from pegboard.gateways.langchain.scripted_model import ScriptedModel, calls

ASK = {"messages": [{"role": "user", "content": "Get the high tide times of a harbour"}]}
RENDERINGS = pytest.mark.parametrize("rendering", ["native", "text"])


def call(rendering: str, name: str, /, **arguments: Any) -> Any:
    if rendering == "native":
        return calls((name, arguments))
    return calls(("call_tool", {"name": name, "arguments": arguments}))


def said(out: dict[str, Any]) -> list[tuple[str, str]]:
    return [(each.status, each.text) for each in out["messages"] if each.type == "tool"]


@RENDERINGS
@pytest.mark.requirement("C5")
@pytest.mark.parametrize(
    "argument", ["config", "run_manager", "callbacks", "runtime", "state", "store", "self", "name", "args", "kwargs"]
)
def test_an_argument_reaches_the_boards_tool_whatever_its_name(town_agents: Any, rendering: str, argument: str) -> None:
    def high_tide(**given: Any) -> str:
        return repr(given)

    schema = {"type": "object", "properties": {argument: {"type": "string"}}, "required": [argument]}
    entry = {"name": "high_tide", "description": "Get the high tide times of a harbour", "inputSchema": schema}
    model = ScriptedModel(steps=[call(rendering, "high_tide", **{argument: "Bergen"}), "done"])

    out = town_agents.agent(model, (entry, high_tide), tools=[], rendering=rendering).invoke(ASK)

    assert said(out) == [("success", repr({argument: "Bergen"}))]


@RENDERINGS
@pytest.mark.requirement("C5")
def test_a_tool_of_the_agents_own_may_be_called_like_the_constant_one(town_agents: Any, rendering: str) -> None:
    @tool
    def call_tool(harbour: str) -> str:
        """Get the high tide times of a harbour"""
        return f"{harbour}: 16:20"

    model = ScriptedModel(steps=[call(rendering, "call_tool", harbour="Bergen"), "done"])

    out = town_agents.agent(model, tools=[call_tool], rendering=rendering).invoke(ASK)

    assert said(out) == [("success", "Bergen: 16:20")]


@RENDERINGS
@pytest.mark.requirement("C5")
def test_a_runtime_that_is_not_annotated_is_injected_and_not_asked_for(town_agents: Any, rendering: str) -> None:
    @tool
    def get_tides(harbour: str, runtime) -> str:  # type: ignore[no-untyped-def]
        """Get the high tide times of a harbour"""
        return f"{harbour}: {type(runtime).__name__}"

    model = ScriptedModel(steps=[call(rendering, "get_tides", harbour="Bergen"), "done"])

    out = town_agents.agent(model, tools=[get_tides], rendering=rendering).invoke(ASK)

    assert said(out) == [("success", "Bergen: ToolRuntime")]


@RENDERINGS
@pytest.mark.requirement("C8")
def test_arguments_that_langchain_would_convert_are_no_mistake(town_agents: Any, rendering: str) -> None:
    @tool
    def get_tides(day: int) -> str:
        """Get the high tide times of a harbour"""
        return f"{day + 1!r}"

    steps = [call(rendering, "get_tides", day="41"), call(rendering, "get_tides", day="noon"), "done"]

    out = town_agents.agent(ScriptedModel(steps=steps), tools=[get_tides], rendering=rendering).invoke(ASK)

    converted, refused = said(out)
    assert converted == ("success", "42")
    assert refused[0] == "error"
    assert "day: Input should be a valid integer" in refused[1]
