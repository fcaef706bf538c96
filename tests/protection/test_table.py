"""The table of protected tools: what it holds, and whom it tells."""

from __future__ import annotations

import sys

import pytest

from pegboard.protection import Signs, agent_of, kind_of, known_agents, known_classes, marking_headers, protected_tools
from pegboard.protection.decision import MOST_REMEMBERED
from pegboard.protection.table import LONGEST_NAME
from unknown_agents import OFFICE

CATALOG = list(OFFICE)
CONTROL = {
    "final_result": "exit",
    "final_result_Invoice": "exit",
    "final_answer": "exit",
    "attempt_completion": "exit",
    "transfer_to_billing_agent": "handoff",
    "transfer_back_to_supervisor": "handoff",
    "handoff_to_billing": "handoff",
    "delegate_work_to_coworker": "handoff",
    "todo_write": "plan",
    "TodoWrite": "plan",
    "update_plan": "plan",
    "write_todos": "plan",
    "think": "plan",
    "mcp__thinking__sequentialthinking": "plan",
    "ask_followup_question": "question",
    "AskUserQuestion": "question",
    "save_memory": "memory",
    "ToolSearch": "tool search",
    "tool_search": "tool search",
    "mcp__pegboard__search_tools": "tool search",
    "pegboard_invoke_tool": "tool search",
    "task": "sub-agent",
    "spawn_agent": "sub-agent",
}


@pytest.mark.requirement("A2")
@pytest.mark.parametrize(("name", "kind"), CONTROL.items())
def test_what_ends_hands_over_plans_asks_and_remembers_is_told_by_its_name(name: str, kind: str) -> None:
    assert kind_of(name) == kind
    assert dict(protected_tools([*CATALOG, name], Signs())) == {len(CATALOG): kind}


@pytest.mark.requirement("A2")
def test_the_schema_of_an_answer_is_told_by_its_form() -> None:
    assert dict(protected_tools([*CATALOG, "ContactInfo"], Signs())) == {60: "output"}
    assert not protected_tools(["ListIssues", "CreateIssue", "GetIssue"], Signs())


@pytest.mark.requirement("A2")
@pytest.mark.parametrize(
    ("agent", "headers", "own", "catalog"),
    [
        ("claude-code", {"user-agent": "claude-cli/2.1.330 (external, sdk-cli)"}, "ListAgents", "mcp__office__"),
        ("codex", {"originator": "codex_exec"}, "clock", "mcp__office__"),
        ("gemini-cli", {"user-agent": "GeminiCLI-tui/0.61.0/gemini-2.5-pro (linux)"}, "a_new_tool", "mcp_office_"),
        ("qwen-code", {"user-agent": "QwenCode/0.24.4 (linux; x64)"}, "monitor", "mcp__office__"),
        ("opencode", {"user-agent": "opencode/1.18.33 ai-sdk/provider-utils"}, "webfetch", "office_"),
        ("cline", {"user-agent": "Cline/3.0.65"}, "run_commands", "office__"),
        ("roo-code", {"user-agent": "RooCode/3.40.0"}, "apply_diff", "mcp--office--"),
        ("copilot-cli", {"user-agent": "copilot/1.0.102 (linux)"}, "report_intent", "office-"),
        ("cursor", {"user-agent": "Cursor/2.1"}, "read_lints", "mcp_office_"),
    ],
)
def test_a_known_agent_is_told_by_its_headers_and_keeps_all_that_is_its_own(
    agent: str, headers: dict[str, str], own: str, catalog: str
) -> None:
    names = [own, *(f"{catalog}{name}" for name in CATALOG)]
    signs = Signs(headers=headers)

    found = agent_of(names, signs)

    assert found is not None
    assert found.name == agent
    assert dict(protected_tools(names, signs)) == {0: found.title}


@pytest.mark.requirement("A2")
def test_agents_with_tools_of_the_same_names_are_not_taken_for_each_other() -> None:
    """Copilot CLI 1.0.102 at a provider of one's own: no header tells it, and five names are also opencode's."""
    own = [
        "bash",
        "read_bash",
        "stop_bash",
        "list_bash",
        "apply_patch",
        "view",
        "fetch_copilot_cli_documentation",
        "skill",
        "sql",
    ]
    own += ["session_store_sql", "read_agent", "list_agents", "write_agent", "rg", "glob", "task"]
    said = Signs(
        headers={"user-agent": "OpenAI/JS 5.20.1"}, instructions=("You are the GitHub Copilot CLI, a terminal",)
    )

    for signs in (said, Signs()):
        found = agent_of([*own, "office-notes"], signs)
        assert found is not None
        assert found.name == "copilot-cli"
        assert set(protected_tools([*own, "office-notes"], signs)) == set(range(len(own)))


@pytest.mark.requirement("A2")
@pytest.mark.parametrize("agent", known_agents(), ids=lambda agent: agent.name)
def test_behind_a_proxy_that_drops_headers_instructions_or_tools_tell_an_agent(agent) -> None:  # type: ignore[no-untyped-def]
    assert agent_of([], Signs(instructions=("", f"\n{agent.begins[0]}, and more."))) == agent
    assert agent_of(agent.own, Signs()) is not None
    assert agent_of(CATALOG, Signs(headers={"user-agent": "python-requests/2.32"})) is None


@pytest.mark.requirement("A2")
def test_every_row_names_its_source_and_no_header_of_the_table_holds_a_secret() -> None:
    assert all(row.source and row.checked for row in (*known_agents(), *known_classes()))
    assert marking_headers().isdisjoint({"authorization", "cookie", "x-api-key", "api-key", "x-goog-api-key"})


def test_nothing_keeps_a_long_name_after_its_request() -> None:
    for length in (LONGEST_NAME + 1, MOST_REMEMBERED + 1):
        name = "transfer_to_" + "x" * length
        before = sys.getrefcount(name)
        assert kind_of(name) == "handoff"
        assert sys.getrefcount(name) == before

    assert dict(protected_tools([*CATALOG, name], Signs())) == {len(CATALOG): "handoff"}
    assert sys.getrefcount(name) == before
