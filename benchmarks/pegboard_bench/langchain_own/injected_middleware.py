"""A plugin of pytest that puts `ToolAttentionMiddleware` before the middleware of every agent that LangChain makes.

pytest -p injected_middleware, with PEGBOARD_INJECTED=pegboard (or nothing, idle) and PEGBOARD_OUTCOMES=FILE

``idle`` puts a middleware there with the same hooks that does nothing: what fails with it, any such middleware
would fail. The outcome of each test is a line of JSON: its name, what came of it, and the message of what failed.
"""

from __future__ import annotations

import functools
import json
import os
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Annotated, Any, NotRequired

import langchain.agents
from langchain.agents import factory
from langchain.agents.middleware import AgentMiddleware, AgentState
from langchain.agents.middleware.types import PrivateStateAttr

WANTED = os.environ["PEGBOARD_INJECTED"]
OUTCOMES = Path(os.environ["PEGBOARD_OUTCOMES"])
LONGEST = 2000


class IdleState(AgentState[Any]):
    idle: NotRequired[Annotated[str, PrivateStateAttr]]


class IdleMiddleware(AgentMiddleware[IdleState, Any, Any]):
    """The hooks of `ToolAttentionMiddleware`, which pass everything on as it is."""

    state_schema = IdleState

    def wrap_model_call(self, request: Any, handler: Callable[[Any], Any]) -> Any:
        return handler(request)

    async def awrap_model_call(self, request: Any, handler: Callable[[Any], Awaitable[Any]]) -> Any:
        return await handler(request)

    def wrap_tool_call(self, request: Any, handler: Callable[[Any], Any]) -> Any:
        return handler(request)

    async def awrap_tool_call(self, request: Any, handler: Callable[[Any], Awaitable[Any]]) -> Any:
        return await handler(request)


def _pegboard() -> AgentMiddleware[Any, Any, Any]:
    from pegboard.gateways.langchain import ToolAttentionMiddleware

    return ToolAttentionMiddleware()


MADE = {"pegboard": _pegboard, "idle": IdleMiddleware}


def _injected(create: Callable[..., Any], made: Callable[[], Any]) -> Callable[..., Any]:
    @functools.wraps(create)
    def create_agent(*args: Any, middleware: Any = (), **options: Any) -> Any:
        return create(*args, middleware=[made(), *middleware], **options)

    return create_agent


if WANTED != "nothing":  # before a module of tests imports it
    langchain.agents.create_agent = factory.create_agent = _injected(factory.create_agent, MADE[WANTED])


def pytest_runtest_logreport(report: Any) -> None:
    if report.when != "call" and not report.failed and not (report.when == "setup" and report.skipped):
        return
    said = str(report.longrepr.reprcrash.message) if hasattr(report.longrepr, "reprcrash") else ""
    with OUTCOMES.open("a", encoding="utf-8") as lines:
        lines.write(json.dumps({"test": report.nodeid, "outcome": report.outcome, "said": said[:LONGEST]}) + "\n")
