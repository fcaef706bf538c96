"""Agents of ten frameworks, with their own packages, keep their control tools behind `pegboard serve`, and end.

`scripts/install_frameworks.py` installs them.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from pegboard_bench.control_tools.measure import ASKS, CONFIGURATIONS, FRAMEWORKS, UNPROTECTED, measured

INSTALLED = Path(".demo/frameworks")
REQUIRED = {"pydantic-ai", "openai-agents", "langchain", "smolagents"}
"""They have a call required, at every step or at the first."""


FIRST, OTHERS = ASKS // 3, ASKS - ASKS // 3
"""Asks in the default configuration, and those where tools are left out whatever that costs."""
BY_ONE_TOOL = {"langgraph-supervisor"}
"""It has five tools of its own: by default all others are called through one."""


@pytest.mark.requirement("A2")
@pytest.mark.timeout(900)
@pytest.mark.parametrize("name", FRAMEWORKS)
def test_no_control_tool_is_dropped_and_every_loop_ends(name: str) -> None:
    if not (INSTALLED / name / "installed.txt").exists():
        pytest.skip("scripts/install_frameworks.py installs it")
    configurations = {
        "default": replace(CONFIGURATIONS["default"], asks=FIRST),
        "tools": replace(CONFIGURATIONS["tools"], asks=OTHERS),
    }
    outcomes = measured(name, INSTALLED, configurations=configurations, direct_asks=1)
    tables = {each: outcome.table() for each, outcome in outcomes.items()}
    default, tools = tables["default"], tables["tools"]

    assert tools["filtered"] > tools["requests"] / 4, "tools of the catalog are left out"
    assert (default["through_one_tool"] > 0) == (name in BY_ONE_TOOL)
    for of in tables.values():
        assert of["control"], "there is nothing to lose"
        assert (of["dropped_names"], of["not_ended"]) == ([], 0)
        assert (of["refused"], of["unknown_agents"], of["not_ended_directly"]) == ([], 0, 0)
        assert (of["required"] > 0) == (name in REQUIRED)
    assert default["asks"] + tools["asks"] == ASKS


@pytest.mark.requirement("A2")
@pytest.mark.timeout(900)
def test_without_protection_the_same_measurement_sees_what_is_lost() -> None:
    if not (INSTALLED / "pydantic-ai" / "installed.txt").exists():
        pytest.skip("scripts/install_frameworks.py installs it")
    configurations = {UNPROTECTED: replace(CONFIGURATIONS[UNPROTECTED], asks=1)}
    of = measured("pydantic-ai", INSTALLED, configurations=configurations, direct_asks=1)[UNPROTECTED].table()

    assert of["dropped_names"] == ["final_result"]
    assert of["not_ended"] == 1
