"""Agents of ten frameworks, with their own packages, keep their control tools behind `pegboard serve`, and end.

`scripts/install_frameworks.py` installs them.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from pegboard.bench.control_tools.measuring import ASKS, FRAMEWORKS, measured

INSTALLED = Path(".demo/frameworks")
REQUIRED = {"pydantic-ai", "openai-agents", "langchain", "smolagents"}
"""They have a call required, at every step or at the first."""


@pytest.mark.requirement("A2")
@pytest.mark.timeout(600)
@pytest.mark.parametrize("name", FRAMEWORKS)
def test_no_control_tool_is_dropped_and_every_loop_ends(name: str) -> None:
    if not (INSTALLED / name / "installed.txt").exists():
        pytest.skip("scripts/install_frameworks.py installs it")
    of = measured(name, INSTALLED, configurations=["tools"], direct_asks=1)["tools"].table()

    assert of["control"], "there is nothing to lose"
    assert of["asks"] == ASKS
    assert of["filtered"] > of["requests"] / 4, "tools of the catalog are left out"
    assert (of["dropped_names"], of["not_ended"]) == ([], 0)
    assert (of["refused"], of["unknown_agents"], of["not_ended_directly"]) == ([], 0, 0)
    assert (of["required"] > 0) == (name in REQUIRED)
