"""Which tools a conversation keeps, by the prompt cache of its model's provider."""

from __future__ import annotations

from concurrent.futures import Future, ThreadPoolExecutor, wait
from typing import Any

import pytest
from langchain.agents import create_agent
from langchain_core.messages import HumanMessage, SystemMessage
from langchain_core.tools import StructuredTool
from langgraph.checkpoint.memory import InMemorySaver

from pegboard import Board
from pegboard.gateways.langchain import ToolAttentionMiddleware
from pegboard.gateways.langchain.cache_aware import CacheAwareTools, CachingModel
from pegboard.gateways.langchain.scripted_model import ScriptedModel
from pegboard.gateways.llm.conversation import turn_statistics
from pegboard.model import Message, Part, Turn
from pegboard.owner_cache import OwnerCache
from pegboard.prompt_cache import known_prices, prices_of
from pegboard.testing import FakeEncoder

SUBJECTS = (
    "tide",
    "loan",
    "letter",
    "train",
    "recipe",
    "invoice",
    "garden",
    "song",
    "parcel",
    "ticket",
    "lamp",
    "boat",
)
PROMPT = SystemMessage("Be brief.")


class PricedModel(ScriptedModel):
    """A scripted model that says which provider's it is, as LangChain's do."""

    provider: str = "openai"

    def _get_ls_params(self, stop: Any = None, **_: Any) -> Any:
        return {"ls_provider": self.provider, "ls_model_name": "gpt-5.4"}


def tool_about(subject: str) -> StructuredTool:
    text = f"Find the {subject} of somebody. " + f"It may be an old {subject} or a new one, near or far. " * 30
    return StructuredTool.from_function(lambda of: of, name=f"find_{subject}", description=text)


def played(town_agents: Any, asks: list[str], *, threads: bool, model: Any = None, **options: Any) -> list[list[str]]:
    """The tools of the requests for these, in one conversation or each in its own."""
    model = model or PricedModel(steps=["hello"] * len(asks))
    given = {"encoder": FakeEncoder(), "profile": "attention", "threshold": 0.0, "k": 1} | options
    middleware = ToolAttentionMiddleware(**given)
    town_agents.middlewares.append(middleware)
    tools = [tool_about(subject) for subject in SUBJECTS]
    agent = create_agent(model, tools=tools, middleware=[middleware], checkpointer=InMemorySaver())
    for number, text in enumerate(asks):
        thread = {"configurable": {"thread_id": str(number if threads else 0)}}
        first = [PROMPT] if threads or not number else []
        agent.invoke({"messages": [*first, HumanMessage(text)]}, thread)
    return [each.names for each in model.asked]


ALL = [f"find_{subject}" for subject in SUBJECTS]
ONE_AFTER_THE_OTHER = [f"Find the {subject} of Mira" for subject in SUBJECTS]


def test_where_conversations_follow_each_other_and_all_tools_stay_cached_later_ones_have_all(town_agents: Any) -> None:
    seen = played(town_agents, ONE_AFTER_THE_OTHER, threads=True, k=4)

    assert {"find_tide", "search_tools"} < {*seen[0]} < {*ALL, "search_tools"}
    assert seen[-1] == ALL


def test_a_conversation_keeps_its_tools_while_that_costs_less(town_agents: Any) -> None:
    long = "Find the tide of Mira " + "at the harbour of Bergen " * 400
    asks = [long, "Find the loan of Mira", "Find the tide of Jon", "Find the loan of Jon"]

    *_, third, fourth = played(town_agents, asks, threads=False)

    assert {"find_tide", "find_loan"} <= {*third}
    assert fourth == third


@pytest.mark.parametrize(
    ("model", "options"),
    [
        (PricedModel(steps=["hello"] * 12, provider="somebody"), {}),
        (PricedModel(steps=["hello"] * 12, provider="anthropic"), {}),
        (PricedModel(steps=["hello"] * 12), {"cache_aware": False}),
    ],
    ids=["no known prices", "a cache that nothing marks", "switched off"],
)
def test_without_a_known_cache_each_request_has_the_tools_of_its_turn(
    town_agents: Any, model: Any, options: dict[str, Any]
) -> None:
    seen = played(town_agents, ONE_AFTER_THE_OTHER, threads=False, model=model, **options)

    assert seen == [[name, "search_tools"] for name in ALL]


def test_all_tools_are_those_that_the_caller_may_use_and_nothing_is_said_twice(town_agents: Any) -> None:
    model = PricedModel(steps=["hello"] * len(SUBJECTS))
    rules = [{"tools": "*/find_boat", "requires": ["is_authenticated:harbour"]}]

    seen = played(town_agents, ONE_AFTER_THE_OTHER, threads=True, model=model, rules=rules, k=4)

    assert seen[-1] == ALL[:-1]
    assert "find_loan" in model.asked[0].messages[0].text
    assert model.asked[-1].messages[0].text == PROMPT.text


def test_conversations_of_several_threads_leave_the_memory_of_both_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(turn_statistics, "MOST_KEYS", 2)
    cache, moved, first, others = CacheAwareTools(), OwnerCache._moved, iter([True]), list[Future[None]]()
    model = CachingModel(name="gpt-5.4", prices=prices_of(known_prices(), "openai", "gpt-5.4"))

    with Board([{"name": "tide"}, {"name": "wind"}], k=1, profile="keyword") as board, ThreadPoolExecutor() as pool:
        decision = board.route_now("the tide?")

        def ask(system: str) -> None:
            said = (Message(role="system", parts=(Part(text=system),)), *Turn.ask("the tide?").messages)
            cache.kept({}, model, Turn(messages=said), decision, board.catalog, (), 0)

        def interrupted(*arguments: Any) -> None:
            """Another thread asks in between, and is given the time to end."""
            if next(first, False):
                others.append(pool.submit(ask, "the other"))
                wait(others, 1.0)
            moved(*arguments)

        monkeypatch.setattr(OwnerCache, "_moved", interrupted)
        ask("the one")
        others[0].result()
        for number in range(4):
            ask(f"a later one, {number}")
