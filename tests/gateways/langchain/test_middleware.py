from __future__ import annotations

import asyncio
import json
from itertools import pairwise
from pathlib import Path
from typing import Annotated, Any

import pytest
from langchain.agents import create_agent
from langchain.agents.middleware import (
    AgentMiddleware,
    AgentState,
    HumanInTheLoopMiddleware,
    ToolCallLimitMiddleware,
)
from langchain_core.messages import HumanMessage, RemoveMessage, SystemMessage
from langchain_core.tools import InjectedToolCallId, tool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.types import Command, interrupt

from pegboard.gateways.langchain import ToolAttentionMiddleware
from pegboard.gateways.langchain.messages import facts_of
from pegboard.gateways.langchain.scripted_model import ScriptedModel, calls
from pegboard.testing import FakeEncoder

TIDE = "When is high tide at the harbour of Bergen?"
BOOK = "Reserve the book Kon-Tiki at the library"
RAW = {
    "name": "multiply",
    "description": "Multiply two numbers",
    "input_schema": {"type": "object", "properties": {"x": {"type": "integer"}, "y": {"type": "integer"}}},
}


def asks(text: str) -> dict[str, Any]:
    return {"messages": [HumanMessage(text)]}


def answers(out: dict[str, Any]) -> list[tuple[str | None, str, str]]:
    return [(each.name, each.status, each.text) for each in out["messages"] if each.type == "tool"]


def tide(asked: Any) -> Any:
    return calls(("get_tides", {"harbour": "Bergen"}))


def through_one(name: str, **arguments: Any) -> Any:
    return calls(("call_tool", {"name": name, "arguments": arguments}))


@pytest.mark.parametrize("way", ["sync", "async"])
def test_the_model_is_shown_the_tools_of_its_turn_and_calls_them(town_agents: Any, way: str) -> None:
    model = ScriptedModel(steps=[tide, "at 16:20"])
    agent = town_agents.agent(model)

    out = agent.invoke(asks(TIDE)) if way == "sync" else asyncio.run(agent.ainvoke(asks(TIDE)))

    assert [each.names for each in model.asked] == [["get_tides"], ["get_tides"]]
    assert answers(out) == [("get_tides", "success", "Bergen: 16:20")]
    assert not any(name.startswith("pegboard") for name in out)


def test_summaries_of_all_tools_stand_at_the_end_of_the_system_prompt(town_agents: Any) -> None:
    model = ScriptedModel(steps=["hello"])

    town_agents.agent(model).invoke({"messages": [SystemMessage("Be brief."), HumanMessage(TIDE)]})

    assert "renew_loan: Renew a loan" in model.asked[0].messages[0].text


@pytest.mark.parametrize("rendering", ["native", "text"])
@pytest.mark.parametrize("way", ["sync", "async"])
def test_schemas_that_nobody_registered_are_shown_and_called(town_agents: Any, way: str, rendering: str) -> None:
    """Functions, raw schemas with what to call, sync and async."""

    async def add(x: int, y: int) -> int:
        """Add two numbers"""
        return x + y

    arguments = {"x": 6, "y": 7}
    model = ScriptedModel(
        steps=[
            through_one("multiply", **arguments) if rendering == "text" else calls(("multiply", arguments)),
            through_one("add", **arguments) if rendering == "text" else calls(("add", arguments)),
            "done",
        ]
    )
    agent = town_agents.agent(model, (RAW, lambda x, y: x * y), add, tools=[], k=2, rendering=rendering)

    ask = asks("multiply two numbers, add two numbers")
    out = agent.invoke(ask) if way == "sync" else asyncio.run(agent.ainvoke(ask))

    assert [text for _, _, text in answers(out)] == ["42", "13"]


def test_hosted_tools_pass_through_and_the_tools_of_other_middleware_are_tools_like_others(town_agents: Any) -> None:
    hosted = {"type": "web_search_20250305", "name": "web_search"}
    model = ScriptedModel(steps=["hello"])
    seen: list[Any] = []

    class Looks(AgentMiddleware):
        def wrap_model_call(self, request: Any, handler: Any) -> Any:
            seen.extend(request.tools)
            return handler(request.override(tools=[]))

    town_agents.agent(model, tools=[*_town(), hosted], more=[Looks()]).invoke(asks(TIDE))

    assert [each if isinstance(each, dict) else each.name for each in seen] == ["get_tides", hosted]


def test_a_function_among_a_requests_tools_is_left_to_langchain(town_agents: Any) -> None:
    def search_tools(words: str) -> str:
        """What another middleware brings along, under the name of our search"""
        return words

    seen: list[Any] = []

    class Brings(AgentMiddleware):
        def wrap_model_call(self, request: Any, handler: Any) -> Any:
            return handler(request.override(tools=[*request.tools, search_tools]))

    class Looks(AgentMiddleware):
        def wrap_model_call(self, request: Any, handler: Any) -> Any:
            seen.extend(request.tools)
            return handler(request.override(tools=[]))

    middleware = [Brings(), town_agents.middleware(way_back=True), Looks()]
    create_agent(ScriptedModel(steps=["hello"]), tools=_town(), middleware=middleware).invoke(asks(TIDE))

    names = [getattr(each, "name", each) for each in seen]
    assert names[-1] is search_tools
    assert names.count("get_tides") == 1
    assert "search_tools" not in names


def test_a_tool_that_the_request_forces_is_offered_whatever_its_score(town_agents: Any) -> None:
    model = ScriptedModel(steps=["hello"])

    class Forces(AgentMiddleware):
        def wrap_model_call(self, request: Any, handler: Any) -> Any:
            return handler(request.override(tool_choice="send_letter"))

    create_agent(model, tools=_town(), middleware=[Forces(), town_agents.middleware()]).invoke(asks(TIDE))

    assert model.asked[0].names == ["get_tides", "send_letter"]


def test_arguments_that_are_injected_are_not_the_models_and_reach_the_tool(town_agents: Any) -> None:
    @tool
    def get_tides_of(harbour: str, call_id: Annotated[str, InjectedToolCallId]) -> str:
        """Get the high tide times of a harbour"""
        return f"{harbour} for {call_id}"

    model = ScriptedModel(steps=[through_one("get_tides_of", harbour="Bergen"), "done"])

    out = town_agents.agent(model, tools=[get_tides_of], rendering="text").invoke(asks(TIDE))

    assert answers(out) == [("get_tides_of", "success", "Bergen for call_1")]
    assert "call_id" not in model.asked[0].messages[-1].text


def test_a_tool_that_raises_is_observed_and_the_error_goes_on_as_without_us(town_agents: Any) -> None:
    @tool
    def get_tides(harbour: str) -> str:
        """Get the high tide times of a harbour"""
        raise OSError("no water")

    model = ScriptedModel(steps=[tide])

    with pytest.raises(OSError, match="no water"):
        town_agents.agent(model, tools=[get_tides]).invoke(asks(TIDE))


@pytest.mark.parametrize("way", ["sync", "async"])
@pytest.mark.parametrize("whose", ["the agent's", "the board's"])
def test_a_tool_that_interrupts_the_graph_goes_on_after_it_and_has_not_failed(
    town_agents: Any, whose: str, way: str
) -> None:
    def pay(amount: int) -> str:
        """Pay an amount at the till"""
        return f"{interrupt('May I pay?')} {amount}"

    model = ScriptedModel(steps=[calls(("pay", {"amount": 5})), "done"])
    own, tools = ([], [tool(pay)]) if whose == "the agent's" else ([pay], [])
    agent = town_agents.agent(model, *own, tools=tools, checkpointer=InMemorySaver())
    board, thread, outcomes = town_agents.middlewares[0].attention.board, {"configurable": {"thread_id": "1"}}, []
    board._shared.observe = outcomes.append

    async def run(given: Any) -> Any:
        return agent.invoke(given, thread) if way == "sync" else await agent.ainvoke(given, thread)

    asked = asyncio.run(run(asks("pay 5 at the till")))
    assert [each.value for each in asked["__interrupt__"]] == ["May I pay?"]
    assert outcomes == []

    assert answers(asyncio.run(run(Command(resume="yes")))) == [("pay", "success", "yes 5")]
    assert [each.success for each in outcomes] == [True]


async def test_a_call_that_is_cancelled_has_not_failed(town_agents: Any) -> None:
    entered, outcomes = asyncio.Event(), []

    @tool
    async def get_tides(harbour: str) -> str:
        """Get the high tide times of a harbour"""
        entered.set()
        return str(await asyncio.Event().wait())

    agent = town_agents.agent(ScriptedModel(steps=[tide]), tools=[get_tides])
    town_agents.middlewares[0].attention.board._shared.observe = outcomes.append
    running = asyncio.create_task(agent.ainvoke(asks(TIDE)))
    await entered.wait()
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running

    assert outcomes == []


@pytest.mark.requirement("000.query")
def test_after_a_tools_result_the_query_has_it_where_asked(town_agents: Any) -> None:
    """Multi-hop: which tool is needed shows in what the first one said (Tool Attention, section 8)."""

    @tool
    def look_up(what: str) -> str:
        """Look up a note"""
        return "harbour high tide times get"

    steps = [calls(("look_up", {"what": "note"})), "done"]
    shown = {}
    for query in ("last_user", "observation"):
        model = ScriptedModel(steps=list(steps))
        agent = town_agents.agent(model, tools=[look_up, *_town()], query=query)
        agent.invoke(asks("look up my note"))
        shown[query] = model.asked[1].names

    assert shown == {"last_user": ["look_up"], "observation": ["get_tides"]}


class Steps:
    """A conversation of several turns, as text."""

    def __init__(self, town_agents: Any, **options: Any) -> None:
        self.model = ScriptedModel(
            steps=[
                through_one("get_tides", harbour="Bergen"),
                "16:20",
                through_one("reserve_book", title="Kon-Tiki"),
                "reserved",
                through_one("get_tides", harbour="Oslo"),
                "16:20 too",
            ]
        )
        self.agent = town_agents.agent(self.model, rendering="text", checkpointer=InMemorySaver(), **options)
        self.config = {"configurable": {"thread_id": "1"}}

    def run(self) -> Steps:
        for ask in (TIDE, BOOK, "And high tide at the harbour of Oslo?"):
            self.agent.invoke(asks(ask), self.config)
        return self


def sent(asked: Any) -> list[str]:
    """A request as a provider's cache reads it: tools, then each message."""
    said = [json.dumps([each.type, each.name, each.content, getattr(each, "tool_calls", 0)]) for each in asked.messages]
    return [json.dumps(asked.tools), *said]


@pytest.mark.requirement("000.cache-layout")
def test_as_text_each_request_begins_with_the_one_before_it_byte_for_byte(town_agents: Any) -> None:
    asked = [sent(each) for each in Steps(town_agents).run().model.asked]

    assert all(later[: len(earlier)] == earlier for earlier, later in pairwise(asked))


@pytest.mark.requirement("000.cache-layout")
def test_as_text_a_schema_stands_right_before_the_users_message_and_is_not_said_twice(town_agents: Any) -> None:
    requests = Steps(town_agents).run().model.asked
    users = [each.text for each in requests[-1].messages if each.type == "human"]

    assert [each.names for each in requests] == [["call_tool"]] * 6
    assert users[0].startswith("Tools that can be called now: get_tides\n{")
    assert users[0].endswith(f"\n\n{TIDE}")
    assert sum(text.count('"name":"get_tides"') for text in users) == 1
    assert users[2].startswith("Tools that can be called now: get_tides\n\n")


def test_as_text_what_was_shown_is_checkpointed_and_the_users_own_words_stay_as_they_were(town_agents: Any) -> None:
    steps = Steps(town_agents).run()
    state = steps.agent.get_state(steps.config).values

    assert [each.text for each in state["messages"] if each.type == "human"][:2] == [TIDE, BOOK]
    assert json.loads(json.dumps(state["pegboard_texts"])) == state["pegboard_texts"]
    assert state["pegboard_active"] == {"get_tides": ["agent", "get_tides"]}


def test_as_text_what_was_shown_beside_messages_that_are_gone_is_forgotten(town_agents: Any) -> None:
    steps = Steps(town_agents)
    for ask in (TIDE, BOOK):
        steps.agent.invoke(asks(ask), steps.config)
    first = steps.agent.get_state(steps.config).values["messages"][0]
    shown = steps.agent.get_state(steps.config).values["pegboard_texts"]
    steps.agent.update_state(steps.config, {"messages": [RemoveMessage(first.id)]})

    steps.agent.invoke(asks("And high tide at the harbour of Oslo?"), steps.config)

    state = steps.agent.get_state(steps.config).values
    assert first.id in shown
    assert shown.keys() - {first.id} < state["pegboard_texts"].keys() <= {each.id for each in state["messages"]}


def test_as_text_a_message_in_parts_keeps_its_parts_behind_the_text(town_agents: Any) -> None:
    model = ScriptedModel(steps=["hello"])
    parts = [{"type": "text", "text": TIDE}, {"type": "image", "base64": "AA==", "mime_type": "image/png"}]

    town_agents.agent(model, rendering="text").invoke({"messages": [HumanMessage(parts)]})

    content = model.asked[0].messages[-1].content
    assert content[0]["text"].startswith("Tools that can be called now")
    assert content[1:] == parts


def test_state_of_ones_own_can_say_what_preconditions_look_at(town_agents: Any) -> None:
    class Mine(AgentState):
        milestones: list[str]

    rules = [{"tools": "*/get_tides", "requires": ["milestone_reached:harbour_master"]}]
    model = ScriptedModel(steps=["hello", "hello"])
    agent = town_agents.agent(model, rules=rules, state_schema=Mine)

    agent.invoke(asks(TIDE))
    agent.invoke({**asks(TIDE), "milestones": ["harbour_master"]})

    assert "get_tides" not in model.asked[0].names
    assert model.asked[1].names == ["get_tides"]


@pytest.mark.parametrize("field", ["auth", "milestones"])
@pytest.mark.parametrize("value", ["post", {"post": "secret"}, 5, None, [5, {}]])
def test_what_an_agent_keeps_under_the_names_of_facts_is_none_unless_it_is_a_collection_of_texts(
    field: str, value: Any
) -> None:
    assert getattr(facts_of({field: value}), field) == frozenset()
    for kind in (list, set, tuple, frozenset):
        assert getattr(facts_of({field: kind(["post"])}), field) == frozenset({"post"})


class AddsLater(AgentMiddleware):
    """Gives the model a tool that the agent does not have, and runs it itself, as LangChain documents it."""

    def _with(self, request: Any) -> Any:
        return request.override(tools=[*request.tools, dice])

    def _run(self, request: Any) -> Any:
        return request.override(tool=dice) if request.tool_call["name"] == dice.name else request

    def wrap_model_call(self, request: Any, handler: Any) -> Any:
        return handler(self._with(request))

    async def awrap_model_call(self, request: Any, handler: Any) -> Any:
        return await handler(self._with(request))

    def wrap_tool_call(self, request: Any, handler: Any) -> Any:
        return handler(self._run(request))

    async def awrap_tool_call(self, request: Any, handler: Any) -> Any:
        return await handler(self._run(request))


@tool
def dice(sides: int) -> str:
    """Throw dice"""
    return f"{sides} of {sides}"


@pytest.mark.requirement("025.other-middleware")
@pytest.mark.parametrize("way", ["sync", "async"])
def test_a_tool_that_another_middleware_adds_later_is_called(town_agents: Any, way: str) -> None:
    model = ScriptedModel(steps=[calls(("dice", {"sides": 6})), calls(("knife", {})), "done"])
    agent = town_agents.agent(model, more=[AddsLater()])

    out = agent.invoke(asks(TIDE)) if way == "sync" else asyncio.run(agent.ainvoke(asks(TIDE)))

    thrown, unknown = answers(out)
    assert model.asked[0].names == ["get_tides", "dice"]
    assert thrown == ("dice", "success", "6 of 6")
    assert json.loads(unknown[2])["error"] == "tool_not_available"
    assert "send_letter" not in unknown[2]


FIVE = {"amount": 5}


@pytest.fixture
def payments(town_agents: Any) -> Any:
    """An agent with a tool `pay`, beside another of that name if it is not alone, and the amounts that it paid."""
    paid: list[int] = []

    def pay(amount: int) -> str:
        """Pay an amount at the till"""
        paid.append(amount)
        return "paid"

    def agent(model: Any, more: Any, *, alone: bool = True, **options: Any) -> Any:
        other = [] if alone else [({"name": "pay", "description": "Pay at another till"}, lambda: "paid elsewhere")]
        own = {"tools": [tool(pay)], "checkpointer": InMemorySaver(), "k": 2}
        return town_agents.agent(model, *other, more=[more], **own, **options)

    return agent, paid


CALLS_OF_PAY = pytest.mark.parametrize(
    ("rendering", "call", "alone"),
    [
        ("native", calls(("pay", FIVE)), True),
        ("native", calls(("agent/pay", FIVE)), True),
        ("native", calls(("agent__pay", FIVE)), False),
        ("text", through_one("pay", **FIVE), True),
        ("text", through_one("agent/pay", **FIVE), True),
        ("text", through_one("agent__pay", **FIVE), False),
        ("text", calls(("pay", FIVE)), True),
    ],
)


@CALLS_OF_PAY
def test_a_human_approves_a_tool_by_its_name_however_the_model_calls_it(
    payments: Any, rendering: str, call: Any, alone: bool
) -> None:
    agent_of, paid = payments
    model = ScriptedModel(steps=[call, "done"])
    agent = agent_of(model, HumanInTheLoopMiddleware(interrupt_on={"pay": True}), rendering=rendering, alone=alone)
    thread = {"configurable": {"thread_id": "1"}}

    out = agent.invoke(asks("pay 5 at the till"), thread)

    assert [each["name"] for each in out["__interrupt__"][0].value["action_requests"]] == ["pay"]
    assert paid == []

    out = agent.invoke(Command(resume={"decisions": [{"type": "approve"}]}), thread)

    called, answered = model.asked[1].messages[-2:]
    written = call.tool_calls[0]["name"]
    assert answers(out) == [("pay", "success", "paid")]
    assert paid == [5]
    assert called.tool_calls[0]["name"] == answered.name == ("pay" if written == "agent/pay" else written)


@CALLS_OF_PAY
def test_calls_of_a_tool_are_limited_by_its_name_however_the_model_calls_it(
    payments: Any, rendering: str, call: Any, alone: bool
) -> None:
    agent_of, paid = payments
    limit = ToolCallLimitMiddleware(tool_name="pay", thread_limit=1)
    agent = agent_of(ScriptedModel(steps=[call, call, "done"]), limit, rendering=rendering, alone=alone)

    agent.invoke(asks("pay 5 at the till"), {"configurable": {"thread_id": "1"}})

    assert paid == [5]


class RunsAnother(AgentMiddleware):
    """Runs another tool than the model called, as a reviewer's edit does."""

    def _edited(self, request: Any) -> Any:
        return request.override(tool=dice, tool_call={**request.tool_call, "name": "dice", "args": {"sides": 6}})

    def wrap_tool_call(self, request: Any, handler: Any) -> Any:
        return handler(self._edited(request))

    async def awrap_tool_call(self, request: Any, handler: Any) -> Any:
        return await handler(self._edited(request))


@pytest.mark.requirement("025.other-middleware")
@pytest.mark.parametrize("way", ["sync", "async"])
def test_an_answer_is_under_the_name_of_the_tool_that_another_middleware_ran(town_agents: Any, way: str) -> None:
    agent = town_agents.agent(ScriptedModel(steps=[tide, "done"]), more=[RunsAnother()])

    out = agent.invoke(asks(TIDE)) if way == "sync" else asyncio.run(agent.ainvoke(asks(TIDE)))

    assert answers(out) == [("dice", "success", "6 of 6")]


@pytest.mark.requirement("025.small-boards")
def test_an_agent_with_few_tools_is_shown_all_of_them_and_nothing_else(tmp_path: Path) -> None:
    """What is chosen among few saves little, and may leave out the one that is needed (decision 9)."""

    class Unasked(FakeEncoder):
        async def encode(self, texts: Any) -> Any:
            raise AssertionError("nothing is ranked")

    model = ScriptedModel(steps=["hello"])
    middleware = ToolAttentionMiddleware(encoder=Unasked(), cache_dir=tmp_path, state_dir=tmp_path)

    create_agent(model, tools=_town(), middleware=[middleware]).invoke(asks(TIDE))
    middleware.close()

    assert model.asked[0].names == [tool.name for tool in _town()]
    assert [each.text for each in model.asked[0].messages] == [TIDE]


@pytest.mark.requirement("025.small-boards")
def test_a_tool_whose_precondition_does_not_hold_is_left_out_of_a_small_board_too(tmp_path: Path) -> None:
    model = ScriptedModel(steps=["hello"])
    rules = [{"tools": "*/send_letter", "requires": ["is_authenticated:post"]}]
    middleware = ToolAttentionMiddleware(encoder=FakeEncoder(), cache_dir=tmp_path, state_dir=tmp_path, rules=rules)

    create_agent(model, tools=_town(), middleware=[middleware]).invoke(asks(TIDE))
    middleware.close()

    assert model.asked[0].names == ["renew_loan", "reserve_book", "get_tides"]


@pytest.mark.requirement("025.small-boards")
@pytest.mark.parametrize("way", ["sync", "async"])
def test_an_agent_without_tools_is_left_alone_and_nothing_is_started(tmp_path: Path, way: str) -> None:
    model = ScriptedModel(steps=["hello"])
    middleware = ToolAttentionMiddleware(cache_dir=tmp_path, state_dir=tmp_path)
    agent = create_agent(model, middleware=[middleware])

    _ = agent.invoke(asks(TIDE)) if way == "sync" else asyncio.run(agent.ainvoke(asks(TIDE)))

    assert [each.text for each in model.asked[0].messages] == [TIDE]
    assert list(tmp_path.iterdir()) == []


def _town() -> list[Any]:
    from langchain_core.tools import StructuredTool

    said = {
        "renew_loan": "Renew a loan of a library book",
        "reserve_book": "Reserve a book at the library",
        "get_tides": "Get the high tide times of a harbour",
        "send_letter": "Send a letter by post to an address",
    }

    def done(what: str = "") -> str:
        return f"done {what}"

    return [StructuredTool.from_function(done, name=name, description=text) for name, text in said.items()]
