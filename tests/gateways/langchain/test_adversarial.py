"""Models that do what they should not, and worlds that change under them: each outcome is one that is defined."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from pathlib import Path
from typing import Annotated, Any

import pytest
from langchain.agents import create_agent
from langchain.agents.middleware import AgentState
from langchain_core.messages import HumanMessage, ToolMessage
from langchain_core.tools import InjectedToolCallId, StructuredTool, tool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.types import Command

from pegboard.gateways.langchain.messages import refused_names
from pegboard.gateways.langchain.scripted_model import ScriptedModel, calls
from pegboard.gateways.langchain.way_back import found_before

TIDE = "When is high tide at the harbour of Bergen?"
LETTER = "Send a letter by post to an address"
CONFIG = {"configurable": {"thread_id": "1"}}
GET_TIDES = ("get_tides", {"harbour": "Bergen"})
SEND = ("send_letter", {"to": "Ada"})
RENDERINGS = pytest.mark.parametrize("rendering", ["native", "text"])


def asks(text: str) -> dict[str, Any]:
    return {"messages": [HumanMessage(text)]}


def said(out: dict[str, Any]) -> list[tuple[str, Any]]:
    """Of each tool message its status, and what it says: a refusal as JSON."""
    messages = [each for each in out["messages"] if each.type == "tool"]
    return [(each.status, json.loads(each.text) if each.text.startswith("{") else each.text) for each in messages]


def call(rendering: str, *wanted: tuple[str, dict[str, Any]]) -> Any:
    if rendering == "native":
        return calls(*wanted)
    return calls(*(("call_tool", {"name": name, "arguments": arguments}) for name, arguments in wanted))


@RENDERINGS
@pytest.mark.requirement("000.hallucination-gate")
def test_a_registered_tool_that_was_not_shown_does_not_run_and_the_model_is_told_what_is_there(
    town_agents: Any, rendering: str
) -> None:
    sent: list[str] = []

    @tool
    def send_letter(to: str) -> str:
        """Send a letter by post to an address"""
        sent.append(to)
        return "sent"

    @tool
    def get_tides(harbour: str) -> str:
        """Get the high tide times of a harbour"""
        return "16:20"

    model = ScriptedModel(steps=[call(rendering, SEND), call(rendering, GET_TIDES), "16:20"])

    out = town_agents.agent(model, tools=[get_tides, send_letter], rendering=rendering).invoke(asks(TIDE))

    (refused, payload), answered = said(out)
    assert (refused, payload["error"], payload["tool"]) == ("error", "tool_not_available", "send_letter")
    assert payload["available"] == ["get_tides"]
    assert answered == ("success", "16:20")
    assert sent == []


@RENDERINGS
@pytest.mark.requirement("000.hallucination-gate")
def test_a_tool_that_nobody_has_is_refused_in_the_same_words(town_agents: Any, rendering: str) -> None:
    model = ScriptedModel(steps=[call(rendering, ("drop_tables", {})), "sorry"])

    ((status, payload),) = said(town_agents.agent(model, rendering=rendering).invoke(asks(TIDE)))

    assert (status, payload["error"], payload["available"]) == ("error", "tool_not_available", ["get_tides"])


@RENDERINGS
@pytest.mark.requirement("025.own-words")
def test_wrong_arguments_never_reach_the_tool_and_the_model_is_told_the_schema(
    town_agents: Any, rendering: str
) -> None:
    """LangChain does not check arguments by a schema that is a document."""
    schema = {"type": "object", "properties": {"harbour": {"type": "string"}}, "required": ["harbour"]}
    get_tides = StructuredTool(
        name="get_tides",
        description="Get the high tide times of a harbour",
        args_schema=schema,
        func=lambda harbour: f"{harbour}: 16:20",
    )
    model = ScriptedModel(steps=[call(rendering, ("get_tides", {"port": "Bergen"})), "sorry"])

    ((status, payload),) = said(town_agents.agent(model, tools=[get_tides], rendering=rendering).invoke(asks(TIDE)))

    assert (status, payload["error"], payload["tool"]) == ("error", "arguments_invalid", "get_tides")
    assert payload["problems"] == ["'harbour' is a required property"]
    assert payload["inputSchema"]["required"] == ["harbour"]


@RENDERINGS
@pytest.mark.parametrize("way", ["sync", "async"])
@pytest.mark.requirement("025.own-words")
def test_arguments_that_langchain_itself_refuses_are_refused_in_its_words_and_are_no_failure_of_the_tool(
    town_agents: Any, rendering: str, way: str
) -> None:
    model = ScriptedModel(steps=[call(rendering, ("get_tides", {"port": "Bergen"})), "sorry"])
    agent = town_agents.agent(model, rendering=rendering)

    out = agent.invoke(asks(TIDE)) if way == "sync" else asyncio.run(agent.ainvoke(asks(TIDE)))

    ((status, text),) = said(out)
    assert status == "error"
    assert text.startswith("Error invoking tool 'get_tides' with kwargs {'port': 'Bergen'} with error:")
    assert asyncio.run(town_agents.middlewares[-1].attention.board.statistics()) == {}


@pytest.mark.parametrize("arguments", [{}, {"name": 7, "arguments": {}}, {"name": "get_tides", "arguments": "Bergen"}])
def test_the_constant_tool_called_without_sense_is_refused_too(town_agents: Any, arguments: Any) -> None:
    model = ScriptedModel(steps=[calls(("call_tool", arguments)), "sorry"])

    ((status, payload),) = said(town_agents.agent(model, rendering="text").invoke(asks(TIDE)))

    assert status == "error"
    if isinstance(payload, str):  # of LangChain: the tool is known, its arguments are not
        assert payload.startswith("Error invoking tool 'get_tides' with kwargs {} with error:")
    else:
        assert payload["error"] in ("tool_not_available", "arguments_invalid")


def test_the_constant_tool_cannot_call_itself(town_agents: Any) -> None:
    inner = {"name": "call_tool", "arguments": {"name": "get_tides", "arguments": {"harbour": "Bergen"}}}
    model = ScriptedModel(steps=[calls(("call_tool", inner)), "sorry"])

    ((_, payload),) = said(town_agents.agent(model, rendering="text").invoke(asks(TIDE)))

    assert payload["error"] == "tool_not_available"


@RENDERINGS
def test_a_second_refusal_widens_the_selection_by_what_the_model_wants(town_agents: Any, rendering: str) -> None:
    model = ScriptedModel(steps=[call(rendering, SEND)] * 3 + ["sent"])

    out = town_agents.agent(model, rendering=rendering).invoke(asks(TIDE))

    assert [status for status, _ in said(out)] == ["error", "error", "success"]
    if rendering == "native":
        shown = [["get_tides"], ["get_tides"], ["get_tides", "send_letter"], ["get_tides", "send_letter"]]
        assert [each.names for each in model.asked] == shown


def test_after_the_users_next_message_refusals_are_forgotten(town_agents: Any) -> None:
    model = ScriptedModel(steps=[calls(SEND), calls(SEND), "sorry", "16:20"])
    agent = town_agents.agent(model, checkpointer=InMemorySaver())

    agent.invoke(asks(TIDE), CONFIG)
    agent.invoke(asks(TIDE), CONFIG)

    assert [len(each.names) for each in model.asked] == [1, 1, 2, 1]


@RENDERINGS
def test_a_tool_that_went_between_two_turns_is_refused_although_the_history_has_it(
    town_agents: Any, rendering: str
) -> None:
    @tool
    def get_tides(harbour: str) -> str:
        """Get the high tide times of a harbour"""
        return "16:20"

    @tool
    def get_weather(place: str) -> str:
        """Get the weather of a place"""
        return "rain"

    saver = InMemorySaver()
    first = ScriptedModel(steps=[call(rendering, GET_TIDES), "16:20"])
    second = ScriptedModel(steps=[call(rendering, GET_TIDES), "it is gone"])

    town_agents.agent(first, tools=[get_tides, get_weather], rendering=rendering, checkpointer=saver).invoke(
        asks(TIDE), CONFIG
    )
    out = town_agents.agent(second, tools=[get_weather], rendering=rendering, checkpointer=saver).invoke(
        asks(TIDE), CONFIG
    )

    status, payload = said(out)[-1]
    assert (status, payload["error"], payload["available"]) == ("error", "tool_not_available", ["get_weather"])


@pytest.mark.parametrize("kept", [["get_tides", "renew_loan"], ["renew_loan"]])
def test_who_resumes_a_conversation_calls_the_tools_that_its_agent_has_then(town_agents: Any, kept: list[str]) -> None:
    """Agents that are made for each request share a middleware: the tools of an earlier one may be another user's."""

    def tools_of(session: str, names: list[str]) -> list[Any]:
        def answer(harbour: str = "") -> str:
            return f"{harbour} by {session}"

        about = {"get_tides": "Get the high tide times of a harbour", "renew_loan": "Renew a loan of a library book"}
        return [StructuredTool.from_function(answer, name=name, description=about[name]) for name in names]

    middleware, saver = town_agents.middleware(), InMemorySaver()
    asked, resumed = ScriptedModel(steps=[calls(GET_TIDES)]), ScriptedModel(steps=["done"])
    options: dict[str, Any] = {"middleware": [middleware], "checkpointer": saver}
    first = create_agent(
        asked, tools=tools_of("the first", ["get_tides", "renew_loan"]), interrupt_before=["tools"], **options
    )
    second = create_agent(resumed, tools=tools_of("the second", kept), **options)

    first.invoke(asks(TIDE), CONFIG)
    ((status, answer),) = said(second.invoke(None, CONFIG))

    if "get_tides" in kept:
        assert (status, answer) == ("success", "Bergen by the second")
    else:
        assert (status, answer["error"]) == ("error", "tool_not_available")


@RENDERINGS
def test_of_two_calls_at_once_the_active_one_runs_and_the_other_is_refused(town_agents: Any, rendering: str) -> None:
    model = ScriptedModel(steps=[call(rendering, SEND, GET_TIDES), "done"])

    out = town_agents.agent(model, rendering=rendering).invoke(asks(TIDE))

    assert [status for status, _ in said(out)] == ["error", "success"]
    assert {each.tool_call_id for each in out["messages"] if isinstance(each, ToolMessage)} == {"call_1", "call_2"}


class Mine(AgentState):
    auth: list[str]


POST = [{"tools": "*/send_letter", "requires": ["is_authenticated:post"]}]


@RENDERINGS
def test_a_precondition_that_ends_hides_its_tool_from_the_next_step_on(town_agents: Any, rendering: str) -> None:
    """A tool logs the agent out in the middle of a turn; no text of the model's can talk past that."""

    @tool
    def send_letter(to: str) -> str:
        """Send a letter by post to an address"""
        return f"sent to {to}"

    @tool
    def log_out(call_id: Annotated[str, InjectedToolCallId]) -> Command[Any]:
        """Send the address of the post office away and log out"""
        return Command(update={"auth": [], "messages": [ToolMessage("bye", tool_call_id=call_id)]})

    steps = [call(rendering, SEND), call(rendering, ("log_out", {})), call(rendering, SEND), "cannot"]
    model = ScriptedModel(steps=steps)
    agent = town_agents.agent(
        model, tools=[send_letter, log_out], rendering=rendering, rules=POST, state_schema=Mine, k=2
    )

    out = agent.invoke({**asks(LETTER), "auth": ["post"]})

    assert [status for status, _ in said(out)] == ["success", "success", "error"]
    assert said(out)[-1][1]["available"] == ["log_out"]


@RENDERINGS
def test_a_precondition_that_ends_between_an_answer_and_its_calls_stops_them(town_agents: Any, rendering: str) -> None:
    model = ScriptedModel(steps=[call(rendering, SEND), "cannot"])
    options = {"rules": POST, "state_schema": Mine, "checkpointer": InMemorySaver(), "interrupt_before": ["tools"]}
    agent = town_agents.agent(model, rendering=rendering, **options)

    agent.invoke({**asks(LETTER), "auth": ["post"]}, CONFIG)
    agent.update_state(CONFIG, {"auth": []})
    out = agent.invoke(None, CONFIG)

    assert [(status, payload["error"]) for status, payload in said(out)] == [("error", "tool_not_available")]


def test_another_process_goes_on_from_a_checkpoint_with_the_same_gate_and_the_same_prefix(tmp_path: Path) -> None:
    program = str(Path(__file__).with_name("resumed.py"))

    def run(phase: str) -> dict[str, Any]:
        command = [sys.executable, "-W", "ignore", program, str(tmp_path / "threads.db"), phase]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        return dict(json.loads(done.stdout.splitlines()[-1]))

    begun, resumed = run("begin"), run("resume")

    assert begun["said"] == []
    assert [status for status, _ in resumed["said"]] == ["success", "success", "error"]
    assert [text for _, text in resumed["said"]][:2] == ["Bergen: 16:20", "3"]
    assert resumed["sent"][: len(begun["sent"])] == begun["sent"]


@pytest.mark.parametrize("content", ["[" * 100_000, '{"found": 7}', '{"found": {"name": "drain_sea"}}'])
def test_results_that_nobody_can_read_name_no_tools(content: str) -> None:
    results = [
        ToolMessage(content=content, name="search_tools", tool_call_id="1"),
        ToolMessage(content=content, name="get_tides", tool_call_id="2", status="error"),
    ]

    assert (refused_names(results), found_before(results, "search_tools")) == ([], [])
