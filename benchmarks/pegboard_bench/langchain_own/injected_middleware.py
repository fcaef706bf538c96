"""A plugin of pytest that puts `ToolAttentionMiddleware` before the middleware of every agent that LangChain makes.

pytest -p injected_middleware, with PEGBOARD_INJECTED=first, and PEGBOARD_OUTCOMES=FILE

Without ``PEGBOARD_INJECTED`` it only writes the outcome of each test, a line of JSON: the test's name, what came of it,
and the last line of what failed.
"""

from __future__ import annotations

import functools
import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import langchain.agents
from langchain.agents import factory

WANTED = os.environ.get("PEGBOARD_INJECTED")
OUTCOMES = Path(os.environ["PEGBOARD_OUTCOMES"])


def _with_middleware(create: Callable[..., Any]) -> Callable[..., Any]:
    from pegboard.gateways.langchain import ToolAttentionMiddleware

    @functools.wraps(create)
    def create_agent(*args: Any, middleware: Any = (), **options: Any) -> Any:
        return create(*args, middleware=[ToolAttentionMiddleware(), *middleware], **options)

    return create_agent


if WANTED:  # before a test module imports it
    langchain.agents.create_agent = factory.create_agent = _with_middleware(factory.create_agent)


def pytest_runtest_logreport(report: Any) -> None:
    if report.when != "call" and not report.failed and not (report.when == "setup" and report.skipped):
        return
    said = str(report.longrepr.reprcrash.message) if hasattr(report.longrepr, "reprcrash") else ""
    with OUTCOMES.open("a", encoding="utf-8") as lines:
        lines.write(json.dumps({"test": report.nodeid, "outcome": report.outcome, "said": said[:2000]}) + "\n")
