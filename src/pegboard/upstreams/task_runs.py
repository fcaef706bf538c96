"""Calls a tool that only runs as a task, for a client that wants the result itself (MCP 2025-11-25, tasks)."""

from __future__ import annotations

from collections.abc import Awaitable
from contextlib import suppress
from typing import Any, Protocol

import anyio
import mcp_types as types
from mcp import MCPError
from mcp.shared.dispatcher import ProgressFnT

from pegboard.errors import PegboardError
from pegboard.upstreams.extension_requests import TaskRequest

CANCEL_SECONDS = 2.0
"""Seconds for the server to hear that nobody waits for the task any more."""


class Send(Protocol):
    """Sends a request to the server of the task."""

    def __call__(self, request: Any, progress: ProgressFnT | None = None) -> Awaitable[dict[str, Any]]: ...


async def awaited_task(send: Send, request: types.CallToolRequest, progress: ProgressFnT | None) -> dict[str, Any]:
    """The result of the task that this call becomes. The server answers `tasks/result` when the task has ended.

    The task is cancelled where the call is, and where its result does not come in time. Raises as ``send`` does.
    """
    created = await send(request, progress)
    task = created.get("task")
    if not isinstance(task, dict):
        return created
    about = {"taskId": task.get("taskId")}
    try:
        return await send(TaskRequest(method="tasks/result", params=about))
    except BaseException:
        with anyio.move_on_after(CANCEL_SECONDS, shield=True), suppress(MCPError, PegboardError):
            await send(TaskRequest(method="tasks/cancel", params=about))
        raise
