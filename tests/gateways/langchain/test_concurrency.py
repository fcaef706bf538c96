"""One middleware for many users at once: what one may see and call never depends on who else asks, or when."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import pytest
from langchain.agents import create_agent
from langchain.agents.middleware import AgentMiddleware
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_core.tools import StructuredTool, tool
from langchain_core.utils.function_calling import convert_to_openai_tool

pytestmark = [
    pytest.mark.slow,
    pytest.mark.requirement("C1"),
    pytest.mark.timeout(600),
    # LangChain silences its own warnings, which no two threads can do at the same time: one puts back what
    # the other has just changed. (ModelRequest's own attributes; the schema of a tool made from a function.)
    pytest.mark.filterwarnings("ignore:Direct attribute assignment to ModelRequest:DeprecationWarning"),
    pytest.mark.filterwarnings("ignore::pydantic.PydanticDeprecatedSince20"),
]

REQUESTS = 100
RENDERINGS = pytest.mark.parametrize("rendering", ["native", "text"])
WAYS = pytest.mark.parametrize("way", ["threads", "async"])


@dataclass
class User:
    name: str
    role: str = "guest"


class Insists(BaseChatModel):
    """Calls the one tool that it is told to, whether it is shown or not, and notes what each user was shown."""

    wanted: str
    rendering: str
    shown: dict[str, list[Any]]

    @property
    def _llm_type(self) -> str:
        return "insists"

    def bind_tools(self, tools: Any, **options: Any) -> Any:
        return self.bind(tools=[convert_to_openai_tool(each) for each in tools], **options)

    def _generate(self, messages: list[Any], stop: Any = None, run_manager: Any = None, **options: Any) -> ChatResult:
        said = str(next(each for each in reversed(messages) if each.type == "human").content)
        user = said.rpartition("I am ")[2]
        functions = [each["function"] for each in options.get("tools", ())]
        system = " ".join(each.text for each in messages if each.type == "system")
        self.shown.setdefault(user, []).append((functions, system + said))
        answer = AIMessage("done")
        if messages[-1].type == "human":
            arguments: dict[str, Any] = {"name": "Ada"}
            name = self.wanted
            if self.rendering == "text":
                name, arguments = "call_tool", {"name": name, "arguments": arguments}
            answer = AIMessage("", tool_calls=[{"name": name, "args": arguments, "id": f"call_{user}"}])
        return ChatResult(generations=[ChatGeneration(message=answer)])


class ForUser(AgentMiddleware):
    """Gives each request the tools of its user: before ours, so that it decides."""

    def __init__(self, tools_of: Callable[[list[Any], User], list[Any]]) -> None:
        super().__init__()
        self._tools_of = tools_of

    def wrap_model_call(self, request: Any, handler: Any) -> Any:
        return handler(request.override(tools=self._tools_of(request.tools, request.runtime.context)))

    async def awrap_model_call(self, request: Any, handler: Any) -> Any:
        return await handler(request.override(tools=self._tools_of(request.tools, request.runtime.context)))


def ask(user: User) -> dict[str, Any]:
    return {"messages": [{"role": "user", "content": f"Delete the customer account of Ada. I am {user.name}"}]}


def answers(agent: Any, users: list[User], way: str) -> dict[str, tuple[str, str]]:
    """Of each user's one call the status and the text."""
    if way == "threads":
        with ThreadPoolExecutor(8) as pool:
            outs = list(pool.map(lambda user: agent.invoke(ask(user), context=user), users))
    else:

        async def all_at_once() -> list[Any]:
            return await asyncio.gather(*(agent.ainvoke(ask(user), context=user) for user in users))

        outs = asyncio.run(all_at_once())
    called = [next(each for each in out["messages"] if each.type == "tool") for out in outs]
    return {user.name: (each.status, each.text) for user, each in zip(users, called, strict=True)}


@WAYS
@RENDERINGS
def test_a_guest_is_never_shown_or_lent_what_only_admins_have(town_agents: Any, rendering: str, way: str) -> None:
    ran: Counter[str] = Counter()

    @tool
    def delete_customer(name: str) -> str:
        """Delete a customer account for good"""
        ran[name] += 1
        return f"deleted {name}"

    @tool
    def read_customer(name: str) -> str:
        """Read a customer account"""
        return f"customer {name}"

    def by_role(tools: list[Any], user: User) -> list[Any]:
        return tools if user.role == "admin" else [each for each in tools if each.name != "delete_customer"]

    model = Insists(wanted="delete_customer", rendering=rendering, shown={})
    middleware = [ForUser(by_role), town_agents.middleware(k=5, rendering=rendering)]
    agent = create_agent(model, tools=[delete_customer, read_customer], middleware=middleware, context_schema=User)
    users = [User(f"user{number}", "admin" if number % 2 else "guest") for number in range(REQUESTS)]

    answered = answers(agent, users, way)

    for user in users:
        seen = [str(each) for each in model.shown[user.name]]
        assert len(seen) == 2
        assert all(("delete_customer" in each) == (user.role == "admin") for each in seen)
        assert answered[user.name][0] == ("success" if user.role == "admin" else "error")
    assert ran == {"Ada": REQUESTS // 2}


@WAYS
@pytest.mark.requirement("P17")
def test_two_tenants_tools_of_one_name_are_shown_and_checked_each_as_its_tenant_describes_it(
    town_agents: Any, way: str
) -> None:
    def tools_of(_tools: list[Any], user: User) -> list[Any]:
        """Other words, and another argument that has to be given, for each tenant."""
        schema = {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}
        if user.role == "strict":
            schema = {**schema, "required": ["name", "reason"]}
        text = f"Delete a customer account for {user.role}"
        return [StructuredTool(name="delete", description=text, args_schema=schema, func=lambda name: user.role)]

    model = Insists(wanted="delete", rendering="native", shown={})
    middleware = [ForUser(tools_of), town_agents.middleware(k=5)]
    agent = create_agent(model, tools=[], middleware=middleware, context_schema=User)
    users = [User(f"user{number}", ("strict", "free")[number % 2]) for number in range(REQUESTS)]

    answered = answers(agent, users, way)

    for user in users:
        assert {each[0]["description"] for each, _ in model.shown[user.name]} == {
            f"Delete a customer account for {user.role}"
        }
        status, text = answered[user.name]
        assert (status, "arguments_invalid" in text) == (
            ("error", True) if user.role == "strict" else ("success", False)
        )


@WAYS
@RENDERINGS
def test_of_tools_that_are_made_for_each_request_each_user_calls_their_own(
    town_agents: Any, rendering: str, way: str
) -> None:
    """The same definition, but each with its user's credentials inside."""

    def tools_of(_tools: list[Any], user: User) -> list[Any]:
        def delete(name: str) -> str:
            """Delete a customer account"""
            return f"{name}, as {user.name}"

        return [StructuredTool.from_function(delete)]

    model = Insists(wanted="delete", rendering=rendering, shown={})
    middleware = [ForUser(tools_of), town_agents.middleware(k=5, rendering=rendering)]
    agent = create_agent(model, tools=[], middleware=middleware, context_schema=User)
    users = [User(f"user{number}") for number in range(REQUESTS)]

    answered = answers(agent, users, way)

    assert answered == {user.name: ("success", f"Ada, as {user.name}") for user in users}
