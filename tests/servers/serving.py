"""What `pegboard serve` is to a bridge: the scripted server on HTTP, announced, with a tool list that can change.

Arguments: the port, the folder to announce in, and the configuration files.
"""

from __future__ import annotations

if __name__ == "__main__":
    import atexit
    import gc

    gc.disable()  # while it imports and in its short life, which is a quarter less
    atexit.register(gc.freeze)

import sys
from pathlib import Path
from typing import Any

import mcp_types as types
import scripted
import uvicorn
from mcp.server.lowlevel import Server
from mcp.server.subscriptions import InMemorySubscriptionBus, ListenHandler, ToolsListChanged
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import Route
from starlette.types import Receive, Scope, Send

from pegboard.gateways.mcp.attach.serve_discovery import announce, health

GROW = scripted.tool("grow", "Tell everybody that the list of tools has changed")
MIRRORED = types.Tool(
    name="mirrored",
    description="Return an argument that goes into a header as well",
    input_schema={"type": "object", "properties": {"region": {"type": "string", "x-mcp-header": "Region"}}},
)
ASK = scripted.tool("ask", "Ask the user for a word")
QUESTION = {"type": "object", "properties": {"word": {"type": "string"}}, "required": ["word"]}
bus = InMemorySubscriptionBus()


async def list_tools(ctx: Any, params: types.PaginatedRequestParams | None) -> types.ListToolsResult:
    listed = await scripted.list_tools(ctx, params)
    return (
        listed
        if listed.next_cursor is not None
        else listed.model_copy(update={"tools": [*listed.tools, GROW, MIRRORED, ASK]})
    )


async def call_tool(ctx: Any, params: types.CallToolRequestParams) -> types.CallToolResult:
    if params.name == "mirrored":
        return scripted.answer((params.arguments or {})["region"])
    if params.name == "ask":
        told = await ctx.session.elicit_form("A word?", QUESTION, ctx.request_id)
        return scripted.answer(str((told.content or {})["word"]))
    if params.name != "grow":
        return await scripted.call_tool(ctx, params)
    await bus.publish(ToolsListChanged())
    await ctx.session.send_tool_list_changed()
    return scripted.answer("grown")


server: Server[Any] = Server(
    "serving",
    on_list_tools=list_tools,
    on_call_tool=call_tool,
    on_subscriptions_listen=ListenHandler(bus),
)


def main(port: str, folder: str, *files: str) -> None:
    configuration = [Path(file) for file in files]

    async def healthz(_request: Request) -> JSONResponse:
        sessions = len(server.session_manager._server_instances)
        return JSONResponse(health(configuration) | {"sessions": sessions, "queries": sorted(queries)})

    async def noting(scope: Scope, receive: Receive, send: Send) -> None:
        if scope.get("path") == "/mcp":
            queries.add(scope["query_string"].decode())
        await app(scope, receive, send)

    queries: set[str] = set()
    app = server.streamable_http_app()
    app.router.routes.append(Route("/healthz", healthz))
    with announce(f"http://127.0.0.1:{port}/mcp", configuration, Path(folder)):
        uvicorn.run(noting, host="127.0.0.1", port=int(port), log_level="warning")


if __name__ == "__main__":
    main(*sys.argv[1:])
