"""An MCP server on stdio whose names, descriptions and results are full of markup and control characters."""

from __future__ import annotations

if __name__ == "__main__":
    import atexit
    import gc

    gc.disable()  # while it imports and in its short life, which is a quarter less
    atexit.register(gc.freeze)

import asyncio
from typing import Any

import mcp_types as types
from mcp.server.lowlevel import Server
from mcp.server.stdio import stdio_server

MARKUP = "<script>document.title='owned'</script><img src=x onerror=\"document.title='owned'\">{{7*7}}\x1b[2J\u202e'\"&"
SCHEMA: dict[str, Any] = {"type": "object"}
TOOLS = [
    types.Tool(name="<b>bold</b>", description=f"Paint {MARKUP}", input_schema=SCHEMA),
    types.Tool(name="plain", description=f"</td></tr></table>{MARKUP}", input_schema=SCHEMA),
]


async def list_tools(_ctx: Any, _params: types.PaginatedRequestParams | None) -> types.ListToolsResult:
    return types.ListToolsResult(tools=TOOLS)


async def call_tool(_ctx: Any, _params: types.CallToolRequestParams) -> types.CallToolResult:
    return types.CallToolResult(content=[types.TextContent(text=MARKUP)], is_error=True)


async def main() -> None:
    server: Server[Any] = Server("marked up", on_list_tools=list_tools, on_call_tool=call_tool)
    async with stdio_server() as (read, write):
        await server.run(read, write, server.create_initialization_options())


if __name__ == "__main__":
    asyncio.run(main())
