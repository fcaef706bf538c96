"""Agents of each framework, in an environment with the framework's packages: two hundred tools, a scripted model.

`scripts/install_frameworks.py` installs them; `scenario.py` says what each agent does. `TEST_FRAMEWORKS=all` plays
every framework, with two hundred requests at once (`make test-adapters`); otherwise six of them are, with fewer.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from pegboard_bench.adapters.drivers import FRAMEWORKS, QUIET, driven, environment

BLOCKS = re.findall(r"^```python\n(.*?)^```", Path("docs/adapters.md").read_text("utf-8"), re.DOTALL | re.MULTILINE)
ADAPTER = re.compile(r"^from pegboard\.adapters\.(?!selection)(\w+) import", re.MULTILINE)
K = 8
"""Tools a turn, and `search_tools`, and control tools."""
SIX = ("agent_framework", "crewai", "google_adk", "llama_index", "openai_agents", "pydantic_ai")
ALL = os.environ.get("TEST_FRAMEWORKS") == "all"
PLAYED = FRAMEWORKS if ALL else SIX
PARALLEL = 200 if ALL else 60
LIMIT = 1200.0
"""Seconds that all parts of one framework may take on a busy machine."""


@pytest.mark.requirement("adapters.turns")
@pytest.mark.requirement("adapters.rights")
@pytest.mark.slow
@pytest.mark.timeout(LIMIT)
@pytest.mark.parametrize("name", PLAYED)
def test_an_agent_of_each_framework_gets_the_tools_of_its_turns_and_no_others(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    environment_of(name)
    monkeypatch.setenv("TEST_PARALLEL", str(PARALLEL))
    found = driven(name, limit=LIMIT - 60)

    for part, said in found.items():
        assert "failed" not in said, f"{part}: {said['failed']}"
    assert found["twenty_turns"]["turns"] == found["twenty_turns"]["offered"] == found["twenty_turns"]["ended"] == 20
    assert found["twenty_turns"]["largest"] <= K + 2
    gate = found["gate"]
    assert (gate["shown"], gate["ran"], gate["said"]) == (False, [], "done")
    assert "tool_not_available" in gate["result"]
    back = found["way_back"]
    assert (back["found"][0], back["found"][1], back["ran"]) == (False, True, ["translate_telescope"])
    assert back["offered"][0]
    parallel = found["parallel"]
    assert (parallel["requests"], parallel["leaks"], parallel["errors"]) == (PARALLEL, 0, [])
    assert (parallel["not_ended"], parallel["deleted_unshown"]) == (0, 0)
    streaming = found["streaming"]
    assert (streaming["said"], streaming["ran"]) == ("done", ["get_calendar_event"])
    assert "done" in "".join(streaming["parts"])
    assert len(streaming["parts"]) >= 2
    assert streaming["largest"] <= K + 2
    several = found["several_agents"]
    assert several["control"], "an agent has no way to the other one"
    assert (several["offered"], several["ran"], several["said"]) == (True, ["get_contract"], "done")
    assert several["largest"] <= K + 3
    board = found["board"]
    assert (board["tools"], board["text"], board["properties"]) == (20, "ok get_invoice 7", ["id"])
    assert board["query"] == "Fetch the invoice with id 7"
    assert "get_invoice" in board["active"]


@pytest.mark.requirement("adapters.turns")
@pytest.mark.timeout(LIMIT)
@pytest.mark.parametrize("name", ["autogen", "openai_agents", "strands"])
def test_a_search_whose_arguments_cannot_be_read_ends_no_run(name: str) -> None:
    truncated, *others = part_of(name, "wrong_search")["results"]

    assert "Unterminated string" in truncated or "Describe in the query" in truncated
    assert len(others) == 2
    assert all("Describe in the query" in each for each in others)


@pytest.mark.requirement("adapters.turns")
def test_strands_tool_for_a_structured_output_is_never_left_out_nor_refused() -> None:
    found = part_of("strands", "structured_output")

    assert found["totals"] == [3.0, 3.0]
    answered, forced = found["forced"]
    (at_once,) = found["at_once"]
    assert forced == ["Payable"]
    for shown in (answered, at_once):
        assert "Payable" in shown
        assert len(shown) <= K + 2


def test_strands_agents_that_are_at_work_at_once_in_a_graph_each_call_the_tools_of_their_own_turn() -> None:
    found = part_of("strands", "graph")

    assert found["ran"] == ["get_invoice", "list_invoice"]


@pytest.mark.parametrize("name", ["agent_framework", "google_adk", "llama_index", "openai_agents", "pydantic_ai"])
def test_a_tool_that_a_request_says_must_be_called_is_never_left_out(name: str) -> None:
    found = part_of(name, "forced")

    assert (found["shown"], found["said"]) == (True, "done")
    assert found["number"] <= K + 2


def test_pydantic_ais_agents_with_deferred_tools_or_a_search_tools_of_their_own_have_another_search() -> None:
    found = part_of("pydantic_ai", "deferred")

    for name in ("deferred", "own"):
        assert (found[name]["said"], found[name]["ran"]) == ("done", ["translate_telescope"])
    (refusal,) = found["no right"]["results"]
    assert "search_tools" not in found["no right"]["shown"]
    assert "tool_not_available" in refusal
    assert "find_tools" in refusal
    assert found["off"]["results"][-1].startswith("the moon")
    assert "find_tools" not in found["off"]["shown"]


def test_openai_agents_make_an_approved_call_of_a_tool_that_a_search_had_found_before_the_run_was_stored() -> None:
    found = part_of("openai_agents", "resumed")

    assert (found["asked"], found["ran"], found["said"]) == (1, ["translate_telescope"], "done")


def test_autogens_agents_as_tools_are_heard_while_they_are_at_work() -> None:
    found = part_of("autogen", "agent_as_tool")

    assert ["expert", "It is paid."] in found["said"]
    assert found["said"][-1] == ["office", "done"]
    assert found["results"][0] == "It is paid."
    assert "tool_not_available" in found["results"][-1]


def test_smolagents_searches_belong_to_their_conversation() -> None:
    found = part_of("smolagents", "conversations")

    assert found["shown"] == [False, True, True, False, False, True]


def test_google_adks_plugin_forgets_runs_that_ended_with_an_error_and_most_cancelled_ones() -> None:
    found = part_of("google_adk", "ended_runs")

    assert found["runs"] == 8
    assert found["after_errors"] <= 2, "one may still be in the framework's hands"
    assert found["after_cancellations"] <= 3 + 2


@pytest.mark.requirement("adapters.turns")
@pytest.mark.parametrize("block", BLOCKS)
def test_python_in_the_documentation_runs(block: str, tmp_path: Path) -> None:
    """In the environment of the framework whose adapter it imports; what needs no framework, in this one."""
    module = ADAPTER.search(block)
    python = sys.executable if module is None else str(environment_of(module[1]).absolute() / "bin" / "python")
    done = subprocess.run(
        [python, "-c", block], capture_output=True, text=True, check=False, cwd=tmp_path, env=os.environ | QUIET
    )

    assert done.returncode == 0, done.stderr[-3000:]


def part_of(name: str, part: str) -> dict[str, Any]:
    """What one part of a framework's driver found."""
    environment_of(name)
    found: dict[str, Any] = driven(name, [part], limit=LIMIT - 60)[part]
    assert "failed" not in found, found["failed"]
    return found


def environment_of(name: str) -> Path:
    folder = environment(name)
    if not (folder / "installed.txt").exists():
        pytest.skip("scripts/install_frameworks.py installs it")
    return folder
