"""The search that a filtered request has, in LangChain's agents and in loops of one's own."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest
from langchain.agents import create_agent
from langchain.agents.middleware import AgentMiddleware, HumanInTheLoopMiddleware
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage
from langchain_core.tools import tool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.types import Command

from pegboard.gateways.langchain import Request, ToolAttention, ToolAttentionMiddleware
from pegboard.gateways.langchain.scripted_model import ScriptedModel, calls
from pegboard.testing import FakeEncoder

TIDE = "When is high tide at the harbour of Bergen?"
LETTER = ("search_tools", {"query": "Send a letter by post"})


def asks(text: str) -> dict[str, Any]:
    return {"messages": [HumanMessage(text)]}


def results(out: dict[str, Any]) -> list[tuple[str | None, str]]:
    return [(each.name, each.text) for each in out["messages"] if isinstance(each, ToolMessage)]


def search_of(asked: Any) -> str:
    """What the search says of itself; empty where there is none."""
    said = [each["function"] for each in asked.tools]
    return next((str(each["description"]) for each in said if each["name"].startswith("search_tools")), "")


def found_in(text: str) -> list[str]:
    return [each["name"] for each in json.loads(text)["found"]]


def agent_of(
    town_agents: Any,
    model: ScriptedModel,
    *own: Any,
    tools: Any = None,
    more: Any = (),
    checkpointer: Any = None,
    **options: Any,
) -> Any:
    """An agent with the middleware's own default for the way back."""
    made = ToolAttentionMiddleware(
        own, encoder=FakeEncoder(), profile="attention", threshold=0.0, **({"k": 1} | options)
    )
    town_agents.middlewares.append(made)
    return create_agent(model, tools=tools or [], middleware=[made, *more], checkpointer=checkpointer)


@pytest.fixture
def town() -> list[Any]:
    @tool
    def renew_loan(loan: str) -> str:
        """Renew a loan of a library book"""
        return f"{loan} renewed"

    @tool
    def get_tides(harbour: str) -> str:
        """Get the high tide times of a harbour"""
        return f"{harbour}: 16:20"

    @tool
    def send_letter(to: str) -> str:
        """Send a letter by post to an address"""
        return f"sent to {to}"

    return [renew_loan, get_tides, send_letter]


@pytest.mark.parametrize("rendering", ["native", "text"])
@pytest.mark.parametrize("way", ["sync", "async", "stream"])
def test_a_model_finds_a_tool_that_was_left_out_and_calls_it(
    town_agents: Any, town: list[Any], way: str, rendering: str
) -> None:
    wanted = ("send_letter", {"to": "Mira"})
    if rendering == "text":
        wanted = ("call_tool", {"name": wanted[0], "arguments": wanted[1]})
    model = ScriptedModel(steps=[calls(LETTER), calls(wanted), "sent"])
    agent = agent_of(town_agents, model, tools=town, rendering=rendering)

    if way == "stream":
        *_, out = agent.stream(asks(TIDE), stream_mode="values")
    else:
        out = agent.invoke(asks(TIDE)) if way == "sync" else asyncio.run(agent.ainvoke(asks(TIDE)))

    (searched, found), (_, sent) = results(out)
    assert (searched, sent) == ("search_tools", "sent to Mira")
    assert "send_letter" in found_in(found)
    assert model.asked[0].names == (["call_tool"] if rendering == "text" else ["get_tides"]) + ["search_tools"]
    assert way == "stream" or not any(name.startswith("pegboard") for name in out)


@pytest.mark.parametrize("is_async", [False, True])
def test_a_search_beside_a_call_that_waited_for_approval_is_made_again_and_finds_what_was_left_out(
    town_agents: Any, town: list[Any], is_async: bool
) -> None:
    model = ScriptedModel(steps=[calls(("get_tides", {"harbour": "Bergen"}), LETTER), calls(LETTER), "found"])
    approval = HumanInTheLoopMiddleware(interrupt_on={"get_tides": True})
    agent = agent_of(town_agents, model, tools=town, more=[approval], checkpointer=InMemorySaver())

    def run(said: Any) -> Any:
        thread: Any = {"configurable": {"thread_id": "1"}}
        return asyncio.run(agent.ainvoke(said, thread)) if is_async else agent.invoke(said, thread)

    run(asks(TIDE))
    _, (_, first), (_, second) = results(run(Command(resume={"decisions": [{"type": "approve"}]})))

    assert "Make it again" in first
    assert "send_letter" in found_in(second)


def test_a_search_finds_the_middlewares_tools_where_another_one_takes_the_agents_own(
    town_agents: Any, town: list[Any]
) -> None:
    class Takes(AgentMiddleware):
        def wrap_model_call(self, request: Any, handler: Any) -> Any:
            return handler(request.override(tools=[]))

    own = [({"name": each.name, "description": each.description}, lambda **_: "done") for each in town[1:]]
    middleware = town_agents.middleware(*own, way_back=True)
    model = ScriptedModel(steps=[calls(LETTER), "found"])

    out = create_agent(model, tools=town[:1], middleware=[Takes(), middleware]).invoke(asks(TIDE))

    assert found_in(results(out)[0][1]) == ["send_letter"]


def test_what_a_search_found_stays_behind_the_other_tools_on_the_following_turns(
    town_agents: Any, town: list[Any]
) -> None:
    model = ScriptedModel(steps=[calls(LETTER), "found", "hello", "hello"])
    agent = agent_of(town_agents, model, tools=town, checkpointer=InMemorySaver())
    thread = {"configurable": {"thread_id": "1"}}

    agent.invoke(asks(TIDE), thread)
    agent.invoke(asks("And the tide tomorrow at the harbour?"), thread)
    agent.invoke(asks(TIDE), {"configurable": {"thread_id": "2"}})

    first, *later, other = model.asked
    assert first.names == other.names == ["get_tides", "search_tools"]
    assert [each.names[:2] for each in later] == [["get_tides", "send_letter"]] * 2


def test_the_search_lists_what_was_left_out_unless_the_system_prompt_names_it(
    town_agents: Any, town: list[Any]
) -> None:
    named, silent = ScriptedModel(steps=["hello"]), ScriptedModel(steps=["hello"])

    agent_of(town_agents, named, tools=town).invoke(asks(TIDE))
    agent_of(town_agents, silent, tools=town, pool=0).invoke(asks(TIDE))

    assert "send_letter" in named.asked[0].messages[0].text
    assert "send_letter" not in search_of(named.asked[0])
    assert "send_letter" in search_of(silent.asked[0])
    assert "get_tides" not in search_of(silent.asked[0])


def test_nothing_is_added_where_nothing_is_left_out_or_the_request_says_what_to_call(
    town_agents: Any, town: list[Any]
) -> None:
    class Forces(AgentMiddleware):
        def wrap_model_call(self, request: Any, handler: Any) -> Any:
            return handler(request.override(tool_choice="get_tides"))

    model, forced, off = (ScriptedModel(steps=["hello"]) for _ in range(3))

    agent_of(town_agents, model, tools=town, k=3).invoke(asks(TIDE))
    middleware = town_agents.middleware(way_back=True)
    create_agent(forced, tools=town, middleware=[Forces(), middleware]).invoke(asks(TIDE))
    agent_of(town_agents, off, tools=town, way_back=False).invoke(asks(TIDE))

    assert sorted(model.asked[0].names) == ["get_tides", "renew_loan", "send_letter"]
    assert forced.asked[0].names == off.asked[0].names == ["get_tides"]


@pytest.mark.parametrize("pool", [0, 1000])
def test_a_tool_that_the_caller_may_not_use_is_neither_named_nor_found(
    town_agents: Any, town: list[Any], pool: int
) -> None:
    model = ScriptedModel(steps=[calls(LETTER), calls(("send_letter", {"to": "Mira"})), "no"])
    rules = [{"tools": "*/send_letter", "requires": ["is_authenticated:post"]}]
    agent = agent_of(town_agents, model, tools=town, rules=rules, pool=pool)

    out = agent.invoke(asks(TIDE))

    (_, found), (_, refused) = results(out)
    assert "send_letter" not in found_in(found)
    assert json.loads(refused)["error"] == "tool_not_available"
    assert not any("send_letter" in search_of(each) for each in model.asked)


def test_what_was_found_goes_when_the_caller_may_no_longer_use_it(town_agents: Any, town: list[Any]) -> None:
    model = ScriptedModel(steps=[calls(LETTER), "found", "hello"])
    rules = [{"tools": "*/send_letter", "requires": ["is_authenticated:post"]}]

    class State(AgentMiddleware):
        from langchain.agents.middleware import AgentState as Base

        class state_schema(Base):  # noqa: N801 - LangChain's name
            auth: list[str]

    agent = agent_of(town_agents, model, tools=town, rules=rules, more=[State()], checkpointer=InMemorySaver())
    thread = {"configurable": {"thread_id": "1"}}

    agent.invoke({**asks(TIDE), "auth": ["post"]}, thread)
    agent.invoke({**asks(TIDE), "auth": []}, thread)

    assert ["send_letter" in each.names for each in model.asked] == [False, True, False]


def test_an_agents_own_tool_of_that_name_is_left_alone(town_agents: Any, town: list[Any]) -> None:
    @tool
    def search_tools(query: str) -> str:
        """Search the shed for hammers and saws"""
        return "a hammer"

    model = ScriptedModel(
        steps=[calls(("search_tools", {"query": "saw"})), calls(("search_tools_2", LETTER[1])), "done"]
    )
    agent = agent_of(town_agents, model, tools=[*town, search_tools], always_available=["*/search_tools"])

    (_, own), (name, found) = results(agent.invoke(asks(TIDE)))

    assert (own, name) == ("a hammer", "search_tools_2")
    assert "send_letter" in found_in(found)


def test_a_search_that_was_not_offered_is_refused_like_any_call(town_agents: Any, town: list[Any]) -> None:
    model = ScriptedModel(steps=[calls(LETTER), "done"])

    ((_, said),) = results(agent_of(town_agents, model, tools=town, way_back=False).invoke(asks(TIDE)))

    assert json.loads(said)["error"] == "tool_not_available"


def test_a_search_for_nothing_is_told_what_to_ask(town_agents: Any, town: list[Any]) -> None:
    model = ScriptedModel(steps=[calls(("search_tools", {})), "done"])

    ((_, said),) = results(agent_of(town_agents, model, tools=town).invoke(asks(TIDE)))

    assert "Describe in the query" in said


def test_two_agents_with_tools_of_their_own_share_a_middleware_and_find_only_their_own(
    town_agents: Any, town: list[Any]
) -> None:
    middleware = ToolAttentionMiddleware(encoder=FakeEncoder(), profile="attention", threshold=0.0, k=1)
    town_agents.middlewares.append(middleware)
    renew, tides, send = town
    models = [ScriptedModel(steps=[calls(LETTER), "done"]) for _ in range(2)]
    agents = [
        create_agent(model, tools=tools, middleware=[middleware])
        for model, tools in zip(models, ([renew, tides, send], [tides, renew]), strict=True)
    ]

    async def both() -> list[Any]:
        return await asyncio.gather(*(agent.ainvoke(asks(TIDE)) for agent in agents))

    first, second = (found_in(results(out)[0][1]) for out in asyncio.run(both()))

    assert "send_letter" in first
    assert "send_letter" not in second


def test_in_a_loop_of_ones_own_a_search_is_answered_beside_the_calls(tmp_path: Path) -> None:
    def get_tides(harbour: str) -> str:
        """Get the high tide times of a harbour"""
        return f"{harbour}: 16:20"

    def send_letter(to: str) -> str:
        """Send a letter by post to an address"""
        return f"sent to {to}"

    options = {"encoder": FakeEncoder(), "cache_dir": tmp_path, "profile": "attention", "k": 1, "threshold": 0.0}
    attention = ToolAttention([get_tides, send_letter], **options)
    state: dict[str, Any] = {"messages": [HumanMessage(TIDE, id="1")]}

    request = attention.before_model(state, Request(messages=state["messages"]))
    asked = calls(LETTER, ("get_tides", {"harbour": "Bergen"}))
    message = AIMessage("", tool_calls=[{**each, "id": str(at)} for at, each in enumerate(asked.tool_calls)])
    response = attention.after_model({**state, **request.update}, message)
    state["messages"] = [*state["messages"], *response.update["messages"]]
    again = attention.before_model(state, Request(messages=state["messages"]))
    attention.board.close()

    assert [each.name for each in request.tools] == ["get_tides", "search_tools"]
    assert [each["name"] for each in response.calls] == ["get_tides"]
    assert found_in(response.found[0].text) == ["send_letter"]
    assert [each.name for each in again.tools] == ["get_tides", "send_letter"]
