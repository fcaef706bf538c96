"""What agents are asked: fifteen ordinary prompts, a whole task, and one that needs a tool of the MCP server midway."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

ActKind = Literal["read", "edit", "run", "mcp", "find"]

PROMPTS = (
    "Fix the bug in calc.py",
    "What does this repo do?",
    "commit my changes",
    "continue",
    "Run the tests and tell me what fails",
    "Add a subtract function to calc.py, with a test",
    "why does add(2, 3) give -1?",
    "Refactor calc.py to use type hints",
    "Write a section on usage for the README",
    "find all TODOs",
    "ok",
    "Behebe den Fehler in calc.py und erklär mir kurz, woran es lag",
    "¿Qué hace este proyecto y cómo se ejecuta?",
    "修复 calc.py 中的错误",
    "Rename add to plus everywhere, and check that nothing else uses the old name",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Act:
    """One thing that the model does: on a file, with a ``command``, or with a ``tool`` of the MCP ``server``.

    `find` is looking for a tool by a word, its ``command``, where the agent leaves that to the model.
    """

    kind: ActKind
    server: str = ""
    tool: str = ""
    arguments: Mapping[str, Any] | None = None
    command: str = ""


READ, EDIT = Act(kind="read"), Act(kind="edit")
LOOK = (READ, Act(kind="run", command="git status --short"))
"""What the model does on each ordinary prompt before it answers."""
FILE = "calc.py"
WRONG, RIGHT = "return a - b", "return a + b"
OUTCOME = "outcome.txt"
TESTED = Act(kind="run", command=f"python3 test_calc.py > {OUTCOME} 2>&1")
ISSUE = "PEG-7"
COMMENT = "Fixed: add() adds."


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """``name``: of the figure; ``acts``: what the model does."""

    name: str
    prompt: str
    acts: tuple[Act, ...]


WHOLE = Task(
    name="edit",
    prompt="add() in calc.py subtracts. Fix it, then run test_calc.py and write what it prints to outcome.txt.",
    acts=(READ, EDIT, TESTED),
)
WITH_MCP = Task(
    name="mcp",
    prompt="Fix what Jira issue PEG-7 asks for, run test_calc.py into outcome.txt, and comment on the issue when done.",
    acts=(
        READ,
        Act(kind="mcp", server="atlassian", tool="jira_get_issue", arguments={"issue_key": ISSUE}),
        EDIT,
        TESTED,
        Act(kind="mcp", server="atlassian", tool="jira_add_comment", arguments={"issue_key": ISSUE, "body": COMMENT}),
    ),
)
PROJECT = {
    FILE: f'"""Sums."""\n\n\ndef add(a, b):\n    {WRONG}\n',
    "test_calc.py": "from calc import add\n\nassert add(2, 3) == 5, add(2, 3)\nprint('passed')\n",
    "README.md": "# calc\n\nA very small calculator.\n\nTODO: say how to use it.\n",
}
"""The files of the project, by name."""
PASSED = "passed\n"
