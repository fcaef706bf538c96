"""A server that does nothing but answer, on the raw SDK: thirty tools of realistic size, every one an echo.

Run by path, so that nothing but the SDK is loaded: `python upstream.py` on stdio, `python upstream.py PORT` on HTTP.
"""

from __future__ import annotations

import asyncio
import sys
from typing import Any

import mcp_types as types
from mcp.server.lowlevel import Server
from mcp.server.stdio import stdio_server

TOOLS = 30
ECHO = "echo_0"

SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "text": {"type": "string", "description": "What to answer; it comes back as it was given"},
        "repository": {"type": "string", "description": "The repository to look at, as owner/name"},
        "state": {"type": "string", "enum": ["open", "closed", "all"], "description": "Which of them are wanted"},
        "labels": {"type": "array", "items": {"type": "string"}, "description": "Only those that carry all of these"},
        "limit": {"type": "integer", "minimum": 1, "maximum": 100, "default": 30, "description": "At most so many"},
    },
    "required": ["text"],
    "additionalProperties": False,
}
LISTED = [
    {
        "name": f"echo_{number}",
        "description": f"Answers what it was given, as number {number} of thirty. Use it where the answer is known and "
        "only the way there is of interest; it reads no file, asks no network and remembers nothing.",
        "inputSchema": SCHEMA,
        "annotations": {"readOnlyHint": True, "openWorldHint": False},
    }
    for number in range(TOOLS)
]


async def list_tools(_ctx: Any, _params: Any) -> dict[str, Any]:
    return {"resultType": "complete", "tools": LISTED, "ttlMs": 60_000, "cacheScope": "private"}


async def call_tool(_ctx: Any, params: types.CallToolRequestParams) -> dict[str, Any]:
    text = (params.arguments or {}).get("text", "")
    return {"resultType": "complete", "content": [{"type": "text", "text": text}], "isError": False}


def schema(_name: str) -> dict[str, Any]:
    """Without it, the SDK lists the tools before every call on HTTP."""
    return SCHEMA


def server() -> Server[Any]:
    return Server(
        "echo",
        on_list_tools=list_tools,  # type: ignore[arg-type]  # the SDK takes dictionaries as well
        on_call_tool=call_tool,  # type: ignore[arg-type]
        get_tool_input_schema=schema,
    )


async def serve_stdio(server: Server[Any]) -> None:
    async with stdio_server() as (read, write):
        await server.run(read, write, server.create_initialization_options())


def serve_http(server: Server[Any], port: int) -> None:
    import uvicorn

    uvicorn.run(server.streamable_http_app(), host="127.0.0.1", port=port, log_level="warning", access_log=False)


if __name__ == "__main__":
    if len(sys.argv) > 1:
        serve_http(server(), int(sys.argv[1]))
    else:
        asyncio.run(serve_stdio(server()))
