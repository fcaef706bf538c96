"""An MCP server with awkward tools, for tests: on stdio, or with a port as argument on streamable HTTP."""

from __future__ import annotations

if __name__ == "__main__":
    import atexit
    import gc

    gc.disable()  # while it imports and in its short life, which is a quarter less
    atexit.register(gc.freeze)

import asyncio
import base64
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import mcp_types as types
from mcp.server.lowlevel import NotificationOptions, Server
from mcp.server.stdio import stdio_server
from mcp.server.subscriptions import InMemorySubscriptionBus, ListenHandler, ToolsListChanged
from mcp.shared.exceptions import MCPError

PIXEL = base64.b64encode(b"\x89PNG\r\n\x1a\n").decode()
ODD_SCHEMA: dict[str, Any] = {
    "type": "object",
    "$defs": {"P": {"type": "object", "properties": {"x": {"type": ["number", "null"], "default": None}}}},
    "properties": {"p": {"$ref": "#/$defs/P"}, "n": {"enum": ["a", None]}, "big": {"type": "integer"}},
    "required": ["p"],
    "additionalProperties": False,
    "x-vendor": {"keep": None},
}


def tool(name: str, description: str, properties: dict[str, Any] | None = None, **more: Any) -> types.Tool:
    schema = {"type": "object", "properties": properties or {}, "required": list(properties or {})}
    return types.Tool(name=name, description=description, input_schema=schema, **more)


TOOLS = [
    tool("echo", "Echo a text back", {"text": {"type": "string"}}),
    tool("add", "Add two numbers", {"a": {"type": "number"}, "b": {"type": "number"}}),
    types.Tool(name="odd", description="Return the arguments as they arrived", input_schema=ODD_SCHEMA),
    tool("fails", "Answer with isError"),
    tool("raises", "Answer with a protocol error"),
    tool("picture", "Return an image, a resource link and structured content"),
    tool("progress", "Report progress three times"),
    tool("slow", "Sleep for a minute"),
    tool("die", "Kill this server with SIGKILL in mid-call"),
    tool("spawn", "Start a child process that outlives a careless parent"),
    tool("environment", "Return an environment variable", {"name": {"type": "string"}}),
    tool("folder", "Return the working directory"),
    tool(
        "grow", "Add a tool and announce it so many times", {"name": {"type": "string"}, "times": {"type": "integer"}}
    ),
]
PAGE = 5


async def list_tools(_ctx: Any, params: types.PaginatedRequestParams | None) -> types.ListToolsResult:
    """Pages of five, with an empty page in the middle and the empty string as a cursor (M9)."""
    cursor = params.cursor if params else None
    if cursor is None:
        global listings
        listings += 1
        return types.ListToolsResult(tools=TOOLS[:PAGE], next_cursor="")
    if cursor == "":
        return types.ListToolsResult(tools=[], next_cursor=str(PAGE))
    start = int(cursor)
    following = str(start + PAGE) if start + PAGE < len(TOOLS) else None
    return types.ListToolsResult(tools=TOOLS[start - 1 : start + PAGE], next_cursor=following)


async def call_tool(ctx: Any, params: types.CallToolRequestParams) -> types.CallToolResult:
    arguments = params.arguments or {}
    match params.name:
        case "echo":
            return answer(arguments["text"])
        case "add":
            total = arguments["a"] + arguments["b"]
            return answer(str(total), structured_content={"sum": total})
        case "odd":
            return answer("odd", structured_content={"arguments": arguments}, _meta={"vendor/y": [1, None]})
        case "fails":
            return answer("it is broken", is_error=True)
        case "raises":
            raise MCPError(-32050, "custom protocol error", {"why": "test"})
        case "picture":
            link = types.ResourceLink(name="r", uri="file:///r.txt")
            content = [types.ImageContent(data=PIXEL, mime_type="image/png"), link]
            return types.CallToolResult(content=content, structured_content={"pixels": 0})
        case "progress":
            for step in range(3):
                await ctx.session.report_progress(step + 1, 3, f"step {step + 1}")
            return answer("done")
        case "slow":
            await asyncio.sleep(60)
            return answer("slept")
        case "die":
            os.kill(os.getpid(), signal.SIGKILL)
        case "spawn":
            child = subprocess.Popen(["sleep", "300"], start_new_session=True)
            return answer(str(child.pid))
        case "environment":
            return answer(os.environ.get(arguments["name"], "unset"))
        case "folder":
            return answer(str(Path.cwd()))
        case "grow":
            TOOLS.append(tool(arguments["name"], f"Tell all about {arguments['name']}s"))
            for _ in range(arguments["times"]):
                await ctx.session.send_tool_list_changed()
                await bus.publish(ToolsListChanged())
            return answer(str(listings))
        case "redefine":  # in no list: tests ask it past the gateway
            [at] = [at for at, each in enumerate(TOOLS) if each.name == arguments["name"]]
            TOOLS[at] = TOOLS[at].model_copy(update=arguments["changes"])
            await ctx.session.send_tool_list_changed()
            await bus.publish(ToolsListChanged())
            return answer("redefined")
        case "listings":  # in no list, so that asking changes nothing
            return answer(str(listings))
    raise MCPError(types.INVALID_PARAMS, f"Unknown tool: {params.name}")


def answer(text: str, **more: Any) -> types.CallToolResult:
    return types.CallToolResult(content=[types.TextContent(text=text)], **more)


listings = 0
bus = InMemorySubscriptionBus()
server: Server[Any] = Server(
    "scripted",
    version="1.0",
    on_list_tools=list_tools,
    on_call_tool=call_tool,
    on_subscriptions_listen=ListenHandler(bus),
)


async def main() -> None:
    async with stdio_server() as (read, write):
        await server.run(read, write, server.create_initialization_options(NotificationOptions(tools_changed=True)))


if __name__ == "__main__":
    if len(sys.argv) > 1:
        import uvicorn

        uvicorn.run(server.streamable_http_app(), host="127.0.0.1", port=int(sys.argv[1]), log_level="warning")
    else:
        asyncio.run(main())
