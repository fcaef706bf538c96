"""Through the MCP gateway: a call after a search teaches which tool the search led to."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractAsyncContextManager

from mcp import Client

from pegboard.clock import SYSTEM_CLOCK
from pegboard.habits import TRIAL
from pegboard.routing.habit_book import HabitBook
from pegboard.routing.habit_learner import HabitLearner

OpenClient = Callable[..., AbstractAsyncContextManager[Client]]


async def test_a_call_after_a_search_is_learnt(client_of: OpenClient) -> None:
    learner = HabitLearner(HabitBook(SYSTEM_CLOCK))
    async with client_of(eager_tools=0, eager_tokens=0, parts={"learner": learner}) as client:
        while not learner.book._known:  # until the tools are embedded, they are ranked by words
            await client.call_tool("search_tools", {"query": "say a text back"})
        await client.call_tool("invoke_tool", {"name": "echo", "arguments": {"text": "hello"}})

    found = [tool for known in learner.book._known.values() for tool in known.vectors() if tool.server != TRIAL]
    assert [tool.name for tool in found] == ["echo"]
    assert all(key.startswith(":") for key in learner.book._known)
