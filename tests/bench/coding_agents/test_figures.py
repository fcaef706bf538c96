"""What is said of an agent's conversations on both sides: tools lost, tasks failed, what was billed."""

from __future__ import annotations

from typing import Any

import pytest

from pegboard_bench.coding_agents.agents import AGENTS
from pegboard_bench.coding_agents.figures import figures, harm, tables
from pegboard_bench.coding_agents.guide import with_figures
from pegboard_bench.coding_agents.measure import Case, Run
from pegboard_bench.coding_agents.page import section
from pegboard_bench.coding_agents.prompts import COMMENT, FILE, OUTCOME, PASSED, RIGHT, WHOLE, WITH_MCP
from pegboard_bench.coding_agents.sessions import Session

ALL = ("Bash", "Read", "mcp__atlassian__jira_get_issue")
DONE = {FILE: RIGHT, OUTCOME: PASSED}


def session(*requests: tuple[str, ...], prompt: str = "continue", **more: Any) -> Session:
    sent = [
        {"body": {"messages": [{"role": "user", "content": prompt}], "tools": [{"name": n} for n in names]}}
        for names in requests
    ]
    fields: dict[str, Any] = {"code": 0, "seconds": 1.0, "refused": (), "missed": (), "said": "", "files": DONE}
    played = [request | {"played": True} for request in sent]
    return Session(prompt=prompt, requests=played, **(fields | more))


def case(through: Session, *, task: Session | None = None, direct: Session | None = None) -> Case:
    done = session(ALL, comments=(COMMENT,))
    return Case(
        agent=AGENTS["claude_code"],
        count=60,
        direct=Run(prompts=[session(ALL)], tasks={WITH_MCP.name: direct or done}),
        gateway=Run(prompts=[through], tasks={WITH_MCP.name: task or done}),
    )


def test_a_prompt_is_lost_where_any_request_lacks_a_tool_of_the_agents_own() -> None:
    assert case(session(ALL, ALL)).lost() == {}
    assert case(session(("Bash", "Read"))).lost() == {}, "the MCP server's may go"
    assert case(session(ALL, ("Read", ALL[2]))).lost() == {"continue": ["Bash"]}
    assert case(session()).lost() == {"continue": ["Bash", "Read"]}


@pytest.mark.parametrize(
    ("wrong", "why"),
    [
        ({"files": {FILE: "return a - b", OUTCOME: PASSED}}, "calc.py is as it was"),
        ({"files": {FILE: RIGHT}}, "outcome.txt has None"),
        ({"comments": ()}, "comments: []"),
        ({"missed": ("Bash",)}, "no tool Bash"),
        ({"refused": ("tools: [] is too short",)}, "tools: [] is too short"),
        ({"code": 3, "said": "no such model"}, "ended with 3: no such model"),
    ],
)
def test_a_task_fails_where_its_outcome_is_not_there(wrong: dict[str, Any], why: str) -> None:
    failed = session(ALL, **({"comments": (COMMENT,)} | wrong))

    assert case(session(ALL), task=failed).failed() == {"mcp": why}
    both = case(session(ALL), task=failed, direct=failed)
    assert both.failed() == {}, "it fails directly too"
    assert both.broken() == {"mcp": why}


def test_the_whole_task_needs_no_comment() -> None:
    assert session(ALL).did(WHOLE) == ""


def test_harm_is_said_with_agent_prompt_and_tool() -> None:
    assert list(harm([case(session(ALL))])) == []
    assert list(harm([case(session(("Read",)))])) == ["Claude Code, 60 MCP tools: 'continue' lost Bash"]
    apart, close = harm([case(session(ALL, ALL, ALL))])
    assert "apart are billed" in apart
    assert "close are billed" in close


def test_figures_and_pages_have_every_agent_and_count() -> None:
    cases = [case(session(("Read",)))]
    found = figures(cases)
    assert found["prompts_lost/claude_code/60"] == 1
    assert found["tasks_failed/claude_code/60"] == 0
    assert found["billed_over_direct/claude_code/60"] < 1

    document: dict[str, Any] = {
        "figures": found,
        "tables": tables(cases) | {"versions": {"claude_code": "1.0"}},
        "command": "make bench-coding-agents",
        "commit": "c",
        "date": "2026-11-23",
        "machine": {"cores": 2, "cpu": "x", "python": "3.11"},
    }
    assert "| Claude Code | 60 | 1 of 1 | 0 |" in section(document)
    assert "broken off" not in section(document)
    guide = with_figures("before\n<!-- figures -->\nold\n<!-- /figures -->\nafter", document)
    assert "| Claude Code | 60 | 1 of 1 | 0 |" in guide
    assert "old" not in guide

    document["tables"]["prompts"] += ["ok"]
    assert "fewer than 2 prompts the run was broken off" in section(document)


def test_where_the_provider_takes_no_request_directly_the_row_says_so_and_everything_has_to_succeed() -> None:
    refused = session(ALL, refused=("tools: 312 are too many",), code=1)

    def having(task: Session) -> Case:
        runs = {"prompts": [refused], "tasks": {WITH_MCP.name: refused}}
        through = Run(prompts=[session(ALL)], tasks={WITH_MCP.name: task})
        return Case(agent=AGENTS["opencode"], count=300, direct=Run(**runs), gateway=through)

    done, failed = having(session(ALL, comments=(COMMENT,))), having(session(ALL, comments=()))

    assert done.refused == "tools: 312 are too many"
    assert list(harm([done])) == []
    assert [said for said in harm([failed]) if "comments: []" in said]
    assert figures([done]) == {"prompts_lost/opencode/300": 0, "tasks_failed/opencode/300": 0}
    found = {"figures": figures([done]), "tables": tables([done])}
    assert "| opencode | 300 | 0 of 1 | 0 |  | directly refused |" in with_figures(FIGURES, found)


FIGURES = "<!-- figures -->\n<!-- /figures -->"
