"""Two agents that nobody has a row for, and a catalog of sixty tools to stand beside theirs."""

from __future__ import annotations

from collections.abc import Mapping

TOPICS = (
    *("invoice", "customer", "ticket", "calendar_event", "email", "contract"),
    *("warehouse_item", "shipment", "employee", "payroll_run", "campaign", "dashboard"),
)
VERBS = {"create": "Create a new", "get": "Fetch one", "list": "List every", "update": "Change", "delete": "Remove a"}

OFFICE: Mapping[str, str] = {
    f"{verb}_{topic}": f"{done} {topic.replace('_', ' ')} in the back office. Returns the record as JSON."
    for topic in TOPICS
    for verb, done in VERBS.items()
}

MARGRAVE: Mapping[str, str] = {
    "peruse": "Shows what stands in a file, with numbers before its lines.",
    "scribble": "Writes a whole file, and overwrites what was there.",
    "amend_lines": "Replaces some lines of a file by others. Peruse it first.",
    "conjure": "Runs a command in a shell that stays open, and answers with what it prints.",
    "forage": "Looks for a pattern in all files of the workspace.",
    "survey": "Lists the directories of the workspace, as deep as you like.",
    "chart_course": "Keeps the plan of the work, and what of it is done.",
    "consult_owner": "Asks the user a question, and waits for the answer.",
    "part_ways": "Ends the work with a summary of what was done.",
}
"""Works in a repository; its MCP tools have the names that their server gave them."""

TERN: Mapping[str, str] = {
    "TernGlance": "Read a file or a part of it.",
    "TernQuill": "Create or edit a file.",
    "TernHull": "Execute a shell command.",
    "TernDive": "Search the codebase with a regular expression.",
    "TernCrew": "Hand a part of the work to a sub-agent.",
    "TernLog": "The to-do list of this conversation.",
    "TernHail": "Ask the user something.",
    "TernMoor": "Finish the task with a result.",
}
"""Names everything after itself, and MCP tools after their server, as in `office_create_invoice`."""

PROMPTS = (
    "Fix the bug in calc.py",
    "What does this repo do?",
    "commit my changes",
    "continue",
    "Add a test for the date parser",
    "Why is the build red?",
    "Rename the function foo to bar everywhere",
    "Update the invoice template in docs/invoice.md",
    "Create a ticket for the customer and then fix the typo",
    "Look at the logs and tell me what happened",
    "yes, do it",
    "Refactor the email module",
    "List all dashboards",
    "Is there a calendar event tomorrow?",
    "Explain the contract between client and server",
)


def instructions(tools: Mapping[str, str]) -> str:
    lines = "\n".join(f"- Use `{name}` where it fits." for name in tools)
    return f"You are a careful helper that works in a repository.\n\n{lines}\n\nNever guess."
