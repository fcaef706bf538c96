"""Where results and notifications name a task (MCP 2025-11-25, tasks; SEP-2663)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

RELATED = "io.modelcontextprotocol/related-task"
"""The `_meta` key of what belongs to a task, in revision 2025-11-25."""


def created_task(result: Mapping[str, Any]) -> str | None:
    """The id of the task that a call has become, in either era; None for a plain result.

    >>> created_task({"resultType": "task", "taskId": "a"}), created_task({"task": {"taskId": "b"}})
    ('a', 'b')
    >>> created_task({"content": [], "taskId": "not a task"})
    """
    about = result if result.get("resultType") == "task" else result.get("task") if "content" not in result else None
    found = about.get("taskId") if isinstance(about, Mapping) else None
    return found if isinstance(found, str) else None


def with_task_id(result: Mapping[str, Any], given: str) -> dict[str, Any]:
    """The result with this id wherever it names its task.

    >>> with_task_id({"task": {"taskId": "b", "status": "working"}}, "c")
    {'task': {'taskId': 'c', 'status': 'working'}}
    """
    changed = dict(result)
    if "taskId" in changed:
        changed["taskId"] = given
    if isinstance(task := changed.get("task"), Mapping) and "taskId" in task:
        changed["task"] = {**task, "taskId": given}
    meta = changed.get("_meta")
    if isinstance(meta, Mapping) and isinstance(related := meta.get(RELATED), Mapping):
        changed["_meta"] = {**meta, RELATED: {**related, "taskId": given}}
    return changed


def final_result(answer: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """What the tool has answered, in an answer to `tasks/result`, or to `tasks/get` of a completed task; else None."""
    if "content" in answer:
        return answer
    found = answer.get("result") if answer.get("status") == "completed" else None
    return found if isinstance(found, Mapping) else None
