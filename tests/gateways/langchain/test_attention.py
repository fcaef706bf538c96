"""The seed's own contract, in a LangGraph of one's own and in a plain loop."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from langchain_core.messages import HumanMessage, ToolMessage
from langchain_core.tools import tool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import END, START, StateGraph

from pegboard import Call
from pegboard.catalog.ingest import read_catalog
from pegboard.errors import ConfigError
from pegboard.gateways.langchain import Request, ToolAttention, ToolAttentionState
from pegboard.gateways.langchain.scripted_model import ScriptedModel, calls
from pegboard.testing import FakeEncoder

TIDE = "When is high tide at the harbour of Bergen?"


def get_tides(harbour: str) -> str:
    """Get the high tide times of a harbour"""
    return f"{harbour}: 16:20"


@tool
def wind() -> str:
    """How the wind blows"""
    return "north"


def renew_loan(loan: str) -> str:
    """Renew a loan of a library book"""
    return f"{loan} renewed"


@pytest.fixture
def attention_of(tmp_path: Path) -> Iterator[Callable[..., ToolAttention]]:
    made: list[ToolAttention] = []

    def make(**options: Any) -> ToolAttention:
        fast = {"encoder": FakeEncoder(), "cache_dir": tmp_path, "profile": "attention", "k": 1, "threshold": 0.0}
        fast["way_back"] = False  # test_way_back.py has its tests
        made.append(ToolAttention([get_tides, renew_loan], **(fast | options)))
        return made[-1]

    yield make
    for each in made:
        each.board.close()


@pytest.mark.requirement("000.alg1", "000.hallucination-gate")
@pytest.mark.parametrize("rendering", ["native", "text"])
def test_before_and_after_model_are_nodes_of_a_graph(
    attention_of: Callable[..., ToolAttention], rendering: Any
) -> None:
    attention = attention_of(rendering=rendering)
    good, bad = ("get_tides", {"harbour": "Bergen"}), ("renew_loan", {"loan": "7"})
    if rendering == "text":
        good, bad = (("call_tool", {"name": name, "arguments": said}) for name, said in (good, bad))
    model = ScriptedModel(steps=[calls(good, bad), "16:20"])

    def ask(state: Any) -> Any:
        request = attention.before_model(state, Request(messages=state["messages"]))
        return {**request.update, "messages": [model.bind_tools(request.tools).invoke(request.prompt)]}

    def act(state: Any) -> Any:
        response = attention.after_model(state, state["messages"][-1])
        done = [
            ToolMessage(
                attention.board.execute_now(Call(name=call["name"], arguments=call["args"])).text,
                tool_call_id=call["id"],
            )
            for call in response.calls
        ]
        return {"messages": [*response.refused, *done]}

    graph = StateGraph(ToolAttentionState)
    graph.add_node("ask", ask)
    graph.add_node("act", act)
    graph.add_edge(START, "ask")
    graph.add_conditional_edges("ask", lambda state: "act" if state["messages"][-1].tool_calls else END, ["act", END])
    graph.add_edge("act", "ask")
    config: Any = {"configurable": {"thread_id": "1"}}

    out = graph.compile(InMemorySaver()).invoke({"messages": [HumanMessage(TIDE)]}, config)

    refused, done = (each.text for each in out["messages"] if each.type == "tool")
    assert json.loads(refused)["error"] == "tool_not_available"
    assert json.loads(refused)["available"] == ["get_tides"]
    assert done == "Bergen: 16:20"


def test_messages_without_ids_are_shown_their_tools_in_native_rendering(
    attention_of: Callable[..., ToolAttention],
) -> None:
    request = attention_of().before_model({}, Request(messages=[HumanMessage(TIDE)]))

    assert [tool.name for tool in request.tools] == ["get_tides"]
    assert request.update == {"pegboard_active": {"get_tides": ["local", "get_tides"]}}


def test_what_passes_is_unwrapped_and_what_does_not_answers_its_call(
    attention_of: Callable[..., ToolAttention],
) -> None:
    attention = attention_of(rendering="text")
    state: Any = {"messages": [HumanMessage(TIDE, id="1")]}
    state |= attention.before_model(state, Request(messages=state["messages"])).update
    wrapped = calls(("call_tool", {"name": "get_tides", "arguments": {"harbour": "Oslo"}}), ("renew_loan", {}))
    wrapped.tool_calls[0]["id"], wrapped.tool_calls[1]["id"] = "a", "b"

    response = attention.after_model(state, wrapped)

    assert [(call["name"], call["args"], call["id"]) for call in response.calls] == [
        ("get_tides", {"harbour": "Oslo"}, "a")
    ]
    assert [each.tool_call_id for each in response.refused] == ["b"]
    assert response.update == {"messages": [wrapped, *response.refused]}


@pytest.mark.parametrize("form", ["path", "catalog", "iterator"])
def test_tools_in_every_form_of_a_board_stand_beside_those_of_a_request(tmp_path: Path, form: str) -> None:
    schemas = [{"name": "tide", "description": "When the tide comes"}]
    (tmp_path / "tools.json").write_text(json.dumps(schemas), "utf-8")
    path = tmp_path / "tools.json"
    given = {"path": path, "catalog": read_catalog(path), "iterator": iter(schemas)}
    attention = ToolAttention(given[form], encoder=FakeEncoder(), cache_dir=tmp_path, way_back=False)
    messages: list[Any] = [HumanMessage("tide and wind?", id="1")]
    try:
        request = attention.before_model({"messages": messages}, Request(messages=messages, tools=[wind]))
        assert {each.name for each in request.tools} == {"tide", "wind"}
    finally:
        attention.board.close()


def test_a_call_of_a_schema_in_the_request_passes_and_one_of_no_tool_is_refused(
    attention_of: Callable[..., ToolAttention],
) -> None:
    attention = attention_of()
    ask_user = {"type": "function", "function": {"name": "ask_user", "parameters": {"type": "object"}}}
    messages: list[Any] = [HumanMessage(TIDE, id="1")]
    request = attention.before_model({"messages": messages}, Request(messages=messages, tools=[ask_user]))
    assert ask_user in request.tools
    answer = calls(("ask_user", {}), ("drain_sea", {}))
    response = attention.after_model({"messages": messages, **request.update}, answer, request.tools)
    assert [call["name"] for call in response.calls] == ["ask_user"]
    assert "drain_sea" in str(response.refused[0].content)


def test_a_gate_of_a_board_is_refused_as_no_call_would_pass_it() -> None:
    with pytest.raises(ConfigError, match="gate is for a board's own"):
        ToolAttention(gate=lambda call, decision: decision.active[0])
