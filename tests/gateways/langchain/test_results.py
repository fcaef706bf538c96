"""Results of tools in fewer tokens, in real agents with checkpoints."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Annotated, Any

import pytest
from langchain_core.messages import HumanMessage, ToolMessage
from langchain_core.tools import InjectedToolCallId, tool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.types import Command

from pegboard.gateways.langchain.scripted_model import ScriptedModel, ScriptedRequest, calls
from pegboard.results.json_tables import restored

ROWS = [{"id": at, "name": f"part {at}", "state": "open", "weight": at / 4} for at in range(400)]
CUT = {"policy": "handle", "threshold": 50, "budget": 400}
ASK = {"messages": [HumanMessage("list the parts")]}


@tool
def list_parts() -> str:
    """List the parts"""
    return json.dumps(ROWS)


@tool(return_direct=True)
def export_parts() -> str:
    """List the parts for the user"""
    return json.dumps(ROWS)


@tool
def note_parts(call: Annotated[str, InjectedToolCallId]) -> Command[Any]:
    """List the parts and note that"""
    return Command(update={"messages": [ToolMessage(json.dumps(ROWS), tool_call_id=call)]})


def parts() -> list[dict[str, Any]]:
    """List the parts of the board"""
    return ROWS


TOOLS = [list_parts, export_parts, note_parts]


def thread(name: str, **more: str) -> dict[str, Any]:
    return {"configurable": {"thread_id": name, **more}}


def answered(out: Any) -> list[str]:
    return [each.text for each in out["messages"] if isinstance(each, ToolMessage)]


def handle_in(text: str) -> str:
    return text.partition('with handle "')[2].partition('"')[0]


def reads(**arguments: Any) -> Any:
    """A step that reads the result which the model was shown last."""

    def step(asked: ScriptedRequest) -> Any:
        shown = next(each.text for each in reversed(asked.messages) if isinstance(each, ToolMessage))
        return calls(("read_result", {"handle": handle_in(shown), **arguments}))

    return step


@pytest.fixture
def options(tmp_path: Path) -> dict[str, Any]:
    return {"tools": TOOLS, "k": 4, "state_dir": tmp_path}


@pytest.mark.requirement("results.langchain")
def test_by_default_the_messages_of_tools_are_what_they_returned(town_agents: Any, options: Any) -> None:
    model = ScriptedModel(steps=[calls(("list_parts", {})), "done"])

    out = town_agents.agent(model, **options).invoke(ASK)

    assert json.loads(answered(out)[0]) == ROWS
    assert "read_result" not in model.asked[0].names


def test_what_is_cut_keeps_the_rows_about_what_the_user_asked(town_agents: Any, options: Any) -> None:
    agent = town_agents.agent(ScriptedModel(steps=[calls(("list_parts", {})), "done"]), results=CUT, **options)

    (cut,) = answered(agent.invoke({"messages": [HumanMessage("What does part 377 weigh?")]}))

    assert "\n377\tpart 377" in cut


@pytest.mark.requirement("results.langchain")
@pytest.mark.parametrize("way", ["sync", "async"])
@pytest.mark.parametrize("rendering", ["native", "text"])
@pytest.mark.parametrize("name", ["list_parts", "note_parts", "parts"])
def test_results_of_every_kind_of_tool_become_tables(
    town_agents: Any, options: Any, way: str, rendering: str, name: str
) -> None:
    wanted = calls((name, {}) if rendering == "native" else ("call_tool", {"name": name, "arguments": {}}))
    model = ScriptedModel(steps=[wanted, "done"])
    agent = town_agents.agent(model, parts, results="shaped", rendering=rendering, **options)

    out = agent.invoke(ASK) if way == "sync" else asyncio.run(agent.ainvoke(ASK))

    assert restored(answered(out)[0].partition("\n")[2].partition("\n\n")[0]) == ROWS
    if name == "parts":
        (message,) = [each for each in out["messages"] if isinstance(each, ToolMessage)]
        assert message.artifact.structured == ROWS


def test_what_goes_to_the_user_and_not_to_the_model_stays_whole(town_agents: Any, options: Any) -> None:
    model = ScriptedModel(steps=[calls(("export_parts", {}))])

    out = town_agents.agent(model, results="shaped", **options).invoke(ASK)

    assert json.loads(answered(out)[0]) == ROWS


@pytest.mark.requirement("results.langchain")
@pytest.mark.parametrize("way", ["sync", "async"])
def test_the_model_reads_on_in_its_own_thread_alone(town_agents: Any, options: Any, way: str) -> None:
    path = {"path": "[?id==`399`].name"}
    steps = [calls(("list_parts", {})), reads(**path), "done"]
    model = ScriptedModel(steps=steps)
    agent = town_agents.agent(model, results=CUT, checkpointer=InMemorySaver(), **options)

    def said(config: Any, ask: Any = ASK) -> Any:
        return agent.invoke(ask, config) if way == "sync" else asyncio.run(agent.ainvoke(ask, config))

    cut, read = answered(said(thread("ann")))
    assert "part 399" not in cut
    assert "part 399" in read
    for other in (thread("ben"), thread("ann", langgraph_auth_user_id="ben"), None):
        stolen = calls(("read_result", {"handle": handle_in(cut), **path}))
        guess = town_agents.agent(ScriptedModel(steps=[stolen, "done"]), results=CUT, **options)
        out = guess.invoke(ASK, other) if way == "sync" else asyncio.run(guess.ainvoke(ASK, other))
        assert "result_not_kept" in answered(out)[0]


@pytest.mark.requirement("results.langchain")
def test_another_process_reads_on_from_the_checkpoint_and_the_past_stays_byte_for_byte(
    town_agents: Any, options: Any
) -> None:
    saver = InMemorySaver()
    first = ScriptedModel(steps=[calls(("list_parts", {})), "400 parts"])
    town_agents.agent(first, results=CUT, checkpointer=saver, **options).invoke(ASK, thread("ann"))
    town_agents.middlewares[-1].close()

    second = ScriptedModel(steps=[reads(grep="part 399"), "that one"])
    agent = town_agents.agent(second, results=CUT, checkpointer=saver, **options)
    out = agent.invoke({"messages": [HumanMessage("and part 399?")]}, thread("ann"))

    assert "399: " not in answered(out)[0]
    assert "part 399" in answered(out)[1]
    before = [each.model_dump() for each in first.asked[-1].messages]
    assert [each.model_dump() for each in second.asked[0].messages][: len(before)] == before


@pytest.mark.requirement("results.langchain")
def test_what_was_whole_in_a_conversation_stays_whole_when_shapes_are_turned_on(town_agents: Any, options: Any) -> None:
    saver = InMemorySaver()
    first = ScriptedModel(steps=[calls(("list_parts", {})), "400 parts"])
    town_agents.agent(first, checkpointer=saver, **options).invoke(ASK, thread("ann"))
    second = ScriptedModel(steps=[calls(("list_parts", {})), "as before"])
    out = town_agents.agent(second, results="shaped", checkpointer=saver, **options).invoke(ASK, thread("ann"))

    old, new = answered(out)
    assert json.loads(old) == ROWS
    assert restored(new.partition("\n")[2]) == ROWS


@pytest.mark.requirement("results.langchain")
def test_a_replay_from_a_checkpoint_gives_the_same_bytes(town_agents: Any, options: Any) -> None:
    model = ScriptedModel(steps=[calls(("list_parts", {})), "done", "done again"])
    agent = town_agents.agent(model, results=CUT, checkpointer=InMemorySaver(), **options)
    agent.invoke(ASK, thread("ann"))
    before_tools = next(each for each in agent.get_state_history(thread("ann")) if each.next == ("tools",))

    out = agent.invoke(None, before_tools.config)

    assert out["messages"][-1].text == "done again"
    assert model.asked[1].messages[-1].text == model.asked[2].messages[-1].text == answered(out)[0]
