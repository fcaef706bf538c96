"""An MCP server of the handshake era that gives every session a name, and does all it does for that session alone.

by_session.py PORT
"""

from __future__ import annotations

if __name__ == "__main__":
    import atexit
    import gc

    gc.disable()  # while it imports and in its short life, which is a quarter less
    atexit.register(gc.freeze)

import asyncio
import json
import sys
from collections import defaultdict
from dataclasses import asdict, dataclass, field
from typing import Any

import mcp_types as types
import uvicorn
from mcp.server.lowlevel import NotificationOptions, Server

NOTE = "note://same/for/all"
"""What every session may watch."""
TEXT = {"type": "string"}
TOOLS: dict[str, dict[str, Any]] = {
    "seen": {},
    "talk": {},
    "roots": {},
    "hold": {"tag": TEXT},
    "release": {},
    "touch": {},
    "grow": {},
}


@dataclass
class Seen:
    """What came from a session."""

    name: str
    cancelled: list[str] = field(default_factory=list)
    held: list[str] = field(default_factory=list)
    levels: list[str] = field(default_factory=list)
    roots: list[list[str]] = field(default_factory=list)
    """At each change."""
    watched: list[str] = field(default_factory=list)


SEEN: dict[str, Seen] = {}
RELEASED: defaultdict[str, asyncio.Event] = defaultdict(asyncio.Event)
GROWN: defaultdict[str, int] = defaultdict(int)


def seen(ctx: Any) -> Seen:
    return SEEN.setdefault(ctx.request.headers["mcp-session-id"], Seen(f"session_{len(SEEN)}"))


async def list_tools(ctx: Any, _params: object) -> dict[str, Any]:
    name = seen(ctx).name
    tools = TOOLS | {f"own_{number}_of_{name}": {} for number in range(GROWN[name] + 1)}
    return {
        "tools": [
            {"name": name, "description": f"The tool {name}", "inputSchema": {"type": "object", "properties": takes}}
            for name, takes in tools.items()
        ]
    }


async def call_tool(ctx: Any, params: types.CallToolRequestParams) -> dict[str, Any]:
    session, where = seen(ctx), ctx.request_id
    said = session.name
    match params.name:
        case "seen":
            said = json.dumps(asdict(session))
        case "talk":
            for step in (1, 2, 3):
                await ctx.session.report_progress(step, 3, f"{step} of {session.name}")
            for level in ("debug", "error"):
                await ctx.session.send_log_message(
                    level, f"{level} of {session.name}", "talk", related_request_id=where
                )
        case "roots":
            said = " ".join(str(each.uri) for each in (await ctx.session.list_roots()).roots)
        case "hold":
            tag = (params.arguments or {})["tag"]
            session.held.append(tag)
            try:
                await RELEASED[session.name].wait()
            except asyncio.CancelledError:
                session.cancelled.append(tag)
                raise
        case "release":
            RELEASED[session.name].set()
        case "touch":
            await ctx.session.send_resource_updated(NOTE)
        case "grow":
            GROWN[session.name] += 1
            await ctx.session.send_tool_list_changed()
            await ctx.session.send_prompt_list_changed()
            await ctx.session.send_resource_list_changed()
    return {"content": [{"type": "text", "text": said}]}


async def list_resources(ctx: Any, _params: object) -> dict[str, Any]:
    return {"resources": [{"uri": NOTE, "name": f"note of {seen(ctx).name}"}]}


async def read_resource(ctx: Any, _params: object) -> dict[str, Any]:
    return {"contents": [{"uri": NOTE, "text": f"read by {seen(ctx).name}"}]}


async def list_prompts(ctx: Any, _params: object) -> dict[str, Any]:
    return {"prompts": [{"name": f"greet_{seen(ctx).name}"}]}


async def watch(ctx: Any, params: types.SubscribeRequestParams) -> dict[str, Any]:
    seen(ctx).watched.append(str(params.uri))
    return {}


async def set_level(ctx: Any, params: types.SetLevelRequestParams) -> dict[str, Any]:
    seen(ctx).levels.append(params.level)
    return {}


async def roots_changed(ctx: Any, _params: object) -> None:
    session = seen(ctx)
    session.roots.append([str(each.uri) for each in (await ctx.session.list_roots()).roots])


async def discover(ctx: Any, _params: object) -> types.DiscoverResult:
    """Nothing of 2026-07-28: clients then shake hands."""
    capabilities = server.get_capabilities(protocol_version=ctx.protocol_version)
    return types.DiscoverResult(supported_versions=["2025-11-25"], capabilities=capabilities)


class Announcing(Server[Any]):
    """Says on every transport that its lists change."""

    def create_initialization_options(
        self, options: NotificationOptions | None = None, *more: Any, **named: Any
    ) -> Any:
        changing = NotificationOptions(tools_changed=True, prompts_changed=True, resources_changed=True)
        return super().create_initialization_options(options or changing, *more, **named)


handlers: dict[str, Any] = {
    "on_list_tools": list_tools,
    "on_call_tool": call_tool,
    "on_list_resources": list_resources,
    "on_read_resource": read_resource,
    "on_subscribe_resource": watch,
    "on_unsubscribe_resource": watch,
    "on_list_prompts": list_prompts,
}
server = Announcing("by-session", version="1.0", **handlers)
server.add_request_handler("server/discover", types.RequestParams, discover)
server.add_request_handler("logging/setLevel", types.SetLevelRequestParams, set_level)
server.add_notification_handler("notifications/roots/list_changed", types.NotificationParams, roots_changed)

if __name__ == "__main__":
    uvicorn.run(server.streamable_http_app(), host="127.0.0.1", port=int(sys.argv[1]), log_level="warning")
