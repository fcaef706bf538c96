"""An agent with tools of its own, a scripted model, and a board without a real encoder."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from langchain.agents import create_agent
from langchain_core.messages import HumanMessage, ToolMessage
from langchain_core.tools import tool

from pegboard.gateways.langchain import ToolAttentionMiddleware
from pegboard.gateways.langchain.scripted_model import ScriptedModel
from pegboard.testing import FakeEncoder


@tool
def renew_loan(loan: str) -> str:
    """Renew a loan of a library book"""
    return f"{loan} renewed"


@tool
def reserve_book(title: str) -> str:
    """Reserve a book at the library"""
    return f"{title} reserved"


@tool
def get_tides(harbour: str) -> str:
    """Get the high tide times of a harbour"""
    return f"{harbour}: 16:20"


@tool
def send_letter(to: str, text: str = "") -> str:
    """Send a letter by post to an address"""
    return f"sent to {to}"


TOWN = [renew_loan, reserve_book, get_tides, send_letter]


class Town:
    """Makes agents, and says what happened in them."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.middlewares: list[ToolAttentionMiddleware] = []

    def middleware(self, *own: Any, **options: Any) -> ToolAttentionMiddleware:
        given = {"encoder": FakeEncoder(), "cache_dir": self._folder, "profile": "attention", "k": 1, "threshold": 0.0}
        given["way_back"] = False  # test_way_back.py has its tests
        made = ToolAttentionMiddleware(own, **(given | options))
        self.middlewares.append(made)
        return made

    def agent(self, model: ScriptedModel, *own: Any, tools: Any = TOWN, more: Any = (), **options: Any) -> Any:
        known = {
            name: options.pop(name) for name in ("checkpointer", "interrupt_before", "state_schema") if name in options
        }
        middleware = [self.middleware(*own, **options), *more]
        return create_agent(model, tools=list(tools), middleware=middleware, **known)


@pytest.fixture
def town_agents(tmp_path: Path) -> Iterator[Town]:
    town = Town(tmp_path)
    yield town
    for each in town.middlewares:
        each.close()


def asks(text: str) -> dict[str, Any]:
    return {"messages": [HumanMessage(text)]}


def answers(out: dict[str, Any]) -> list[tuple[str | None, str, str]]:
    return [(each.name, each.status, each.text) for each in out["messages"] if isinstance(each, ToolMessage)]


Ask = Callable[[str], dict[str, Any]]
