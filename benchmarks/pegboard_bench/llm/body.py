"""The request that everything here is measured with: 120 tools, 103 KB, like those of a client with many servers."""

from __future__ import annotations

import json
from typing import Any

TOOLS = 120
AREAS = ("calendar", "invoice", "ticket", "repository", "warehouse", "newsletter", "payroll", "fleet", "lab", "library")
ACTIONS = (
    "create", "update", "delete", "list", "search", "export", "import", "archive", "share", "approve", "merge", "audit",
)  # fmt: skip
NOTE = (
    "Use it when the user wants to {action} something in the {area} system; give every field that is known, and leave "
    "the rest out. Times are ISO 8601 in UTC; identifiers are those that the list and search tools return. It answers "
    "with the entry as it then stands, and with an error that says which field was wrong where it could not be done; a "
    "second call with the same identifier changes nothing."
)


def tool(number: int) -> dict[str, Any]:
    """One function tool of some 850 bytes."""
    area, action = AREAS[number % len(AREAS)], ACTIONS[number // len(AREAS)]
    note = NOTE.format(action=action, area=area)
    properties = {
        f"{area}_{field}": {"type": "string", "description": f"The {field} of the {area} entry to {action}."}
        for field in ("id", "title", "owner")
    }
    return {
        "type": "function",
        "function": {
            "name": f"{area}_{action}",
            "description": f"{action.title()} entries of the {area} system. {note}",
            "parameters": {"type": "object", "properties": properties, "required": [f"{area}_id"]},
        },
    }


def chat_request(ask: str = "Approve the invoice of the printing shop and archive its ticket.") -> bytes:
    """A Chat Completions request."""
    said = [{"role": "system", "content": "You run the back office. " * 40}, {"role": "user", "content": ask}]
    body = {"model": "some-model", "messages": said, "tools": [tool(number) for number in range(TOOLS)]}
    return json.dumps(body | {"tool_choice": "auto", "parallel_tool_calls": True, "stream": True}).encode()


def messages_request(ask: str) -> bytes:
    """The same as a request of Anthropic's Messages."""
    functions = [tool(number)["function"] for number in range(TOOLS)]
    offered = [
        {"name": each["name"], "description": each["description"], "input_schema": each["parameters"]}
        for each in functions
    ]
    body = {"model": "claude-sonnet-5", "max_tokens": 1000, "system": "You run the back office. " * 40}
    return json.dumps(body | {"messages": [{"role": "user", "content": ask}], "tools": offered}).encode()
