"""The tool that stands for the tools of a server which nobody has signed in to yet."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable
from typing import Any

from pegboard.errors import ToolNotAvailable
from pegboard.model import Tool, ToolId

SIGN_IN_TOOL = "sign_in"


def sign_in_tool(server: str, *, per_user: bool = False) -> Tool:
    """``per_user``: each user signs in for themselves; by a command only with their name, which no tool knows."""
    otherwise = "" if per_user else f": the user runs `pegboard login {server}`"
    description = (
        f"Sign in to the server {server!r} (OAuth), which lists its tools only after that. Opens the page for it where "
        f"the client can; otherwise it says what to do{otherwise}."
    )
    definition: dict[str, Any] = {
        "name": SIGN_IN_TOOL,
        "title": f"Sign in to {server}",
        "description": description,
        "inputSchema": {"type": "object", "properties": {}},
        "annotations": {"readOnlyHint": False, "destructiveHint": False, "idempotentHint": True, "openWorldHint": True},
    }
    return Tool(
        id=ToolId(server, SIGN_IN_TOOL),
        title=definition["title"],
        description=description,
        input_schema=definition["inputSchema"],
        annotations=definition["annotations"],
        definition=definition,
    )


async def admitted(tools: Iterable[Tool], admit: Callable[[ToolId], Awaitable[None]]) -> list[Tool]:
    """The tools that ``admit`` does not hold back."""
    found = []
    for tool in tools:
        try:
            await admit(tool.id)
        except ToolNotAvailable:
            continue
        found.append(tool)
    return found


def signed_in_result(server: str, tools: Iterable[Tool]) -> dict[str, Any]:
    """The answer to a call after which the server's own tools are there."""
    names = ", ".join(tool.name for tool in tools) or "none"
    text = f"The user is signed in to {server!r}. Its tools are listed now: {names}."
    return {"content": [{"type": "text", "text": text}], "isError": False}
