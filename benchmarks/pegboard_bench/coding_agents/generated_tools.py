"""An MCP server of generated tools, as a process on stdio or HTTP. They are there to be many: no task needs one.

`python -m pegboard_bench.coding_agents.generated_tools COUNT [--port PORT]`
"""

from __future__ import annotations

import asyncio
import sys
from typing import Any

from mcp.server.lowlevel import Server
from mcp.server.stdio import stdio_server
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

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


def server(count: int) -> Server[Any]:
    listed = tools(count)

    async def on_list_tools(ctx: Any, params: Any) -> Any:
        return {"resultType": "complete", "tools": listed, "ttlMs": 0, "cacheScope": "private"}

    async def on_call_tool(ctx: Any, params: Any) -> Any:
        return {"resultType": "complete", "content": [{"type": "text", "text": "ok"}], "isError": False}

    return Server("backoffice", on_list_tools=on_list_tools, on_call_tool=on_call_tool)


async def serve(made: Server[Any]) -> None:
    async with stdio_server() as (read, write):
        await made.run(read, write, made.create_initialization_options())


def serve_http(made: Server[Any], port: int) -> None:
    import uvicorn

    async def healthy(request: Request) -> Response:
        return Response("ok")

    app = made.streamable_http_app(stateless_http=True, custom_starlette_routes=[Route("/healthz", healthy)])
    uvicorn.run(app, host="127.0.0.1", port=port, log_level="warning", access_log=False)


if __name__ == "__main__":
    if "--port" in sys.argv:
        serve_http(server(int(sys.argv[1])), int(sys.argv[-1]))
    else:
        asyncio.run(serve(server(int(sys.argv[1]))))
