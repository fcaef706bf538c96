"""As much of Jira's REST API as an MCP server asks for one issue and its comments."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any

from mock_providers.wire import Reply

KEY = "PEG-7"
PREFIX = "/rest/"
AUTHOR = {"name": "ada", "displayName": "Ada", "active": True}
AT = "2026-11-20T09:00:00.000+0000"
ISSUE: dict[str, Any] = {
    "id": "10007",
    "key": KEY,
    "self": f"http://127.0.0.1/rest/api/2/issue/{KEY}",
    "fields": {
        "summary": "add() subtracts",
        "description": "calc.add(2, 3) gives -1. It has to give 5.",
        "status": {"name": "Open", "statusCategory": {"key": "new", "name": "To Do"}},
        "issuetype": {"name": "Bug"},
        "priority": {"name": "Medium"},
        "project": {"key": "PEG", "name": "Pegboard", "id": "1"},
        "reporter": AUTHOR,
        "assignee": AUTHOR,
        "created": AT,
        "updated": AT,
        "labels": [],
        "comment": {"comments": [], "total": 0},
    },
}


@dataclass
class Jira:
    """``read`` has the issues that were asked for, ``comments`` what was said of the issue."""

    read: list[str] = field(default_factory=list)
    comments: list[str] = field(default_factory=list)

    def answer(self, method: str, path: str, body: bytes) -> Reply:
        last = path.rstrip("/").rpartition("/")[2]
        if method == "GET" and last == KEY:
            self.read.append(last)
            return Reply(document=ISSUE)
        if method == "POST" and last == "comment":
            said = str(json.loads(body)["body"])
            self.comments.append(said)
            return Reply(document={"id": "1", "body": said, "created": AT, "updated": AT, "author": AUTHOR})
        if last in ("issueLinkType", "field", "remotelink", "comment", "watchers"):
            return Reply(document=[])
        return Reply(document={"errorMessages": [f"{method} {path} is not known here"]}, status=404)
