"""An MCP server of generated tools, as a process on stdio. They are there to be many: no task needs one.

`python -m pegboard_bench.coding_agents.generated_tools COUNT`
"""

from __future__ import annotations

import asyncio
import sys
from typing import Any

from mcp.server.lowlevel import Server
from mcp.server.stdio import stdio_server

from pegboard_bench.synthetic import synthetic_catalog

SEED = 7


def tools(count: int) -> list[dict[str, Any]]:
    """Definitions as a server lists them."""
    catalog = synthetic_catalog(count, SEED)
    return [
        {"name": tool.name, "description": tool.description, "inputSchema": tool.input_schema or {"type": "object"}}
        for server in catalog.servers
        for tool in catalog.of_server(server)
    ]


async def serve(count: int) -> None:
    listed = tools(count)

    async def on_list_tools(ctx: Any, params: Any) -> Any:
        return {"resultType": "complete", "tools": listed, "ttlMs": 0, "cacheScope": "private"}

    async def on_call_tool(ctx: Any, params: Any) -> Any:
        return {"resultType": "complete", "content": [{"type": "text", "text": "ok"}], "isError": False}

    server: Server[Any] = Server("backoffice", on_list_tools=on_list_tools, on_call_tool=on_call_tool)
    async with stdio_server() as (read, write):
        await server.run(read, write, server.create_initialization_options())


if __name__ == "__main__":
    asyncio.run(serve(int(sys.argv[1])))
