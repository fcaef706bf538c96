"""An MCP server whose tools, resources and prompts are those of its caller's token: every name and text has the
token's subject in it."""

from __future__ import annotations

from collections import Counter, defaultdict
from typing import Any

import mcp_types as types
from mcp.server.auth.middleware.auth_context import get_access_token
from mcp.server.lowlevel import Server
from mcp.server.subscriptions import InMemorySubscriptionBus, ListenHandler, ToolsListChanged


def subject() -> str:
    token = get_access_token()
    return "nobody" if token is None or token.subject is None else token.subject


def personal_server(asked: Counter[str]) -> Server[Any]:
    bus = InMemorySubscriptionBus()
    grown: defaultdict[str, int] = defaultdict(int)

    async def list_tools(_ctx: Any, _params: object) -> types.ListToolsResult:
        who = subject()
        asked[f"list {who}"] += 1
        own = [f"diary_of_{who}", *(f"page_{number}_of_{who}" for number in range(grown[who]))]
        tools = [
            types.Tool(name=name, description=f"The secret {name} of {who}.", input_schema={"type": "object"})
            for name in ("whose", "add_page", *own)
        ]
        return types.ListToolsResult(tools=tools)

    async def call_tool(ctx: Any, params: types.CallToolRequestParams) -> types.CallToolResult:
        who = subject()
        asked[f"call {params.name} {who}"] += 1
        if params.name == "add_page":
            grown[who] += 1
            await ctx.session.send_tool_list_changed()
            await bus.publish(ToolsListChanged())  # to every connection, whoever's
        return types.CallToolResult(content=[types.TextContent(text=who)])

    async def list_resources(_ctx: Any, _params: object) -> types.ListResourcesResult:
        who = subject()
        return types.ListResourcesResult(resources=[types.Resource(uri=f"diary://{who}/today", name=f"diary {who}")])

    async def read_resource(_ctx: Any, params: types.ReadResourceRequestParams) -> types.ReadResourceResult:
        text = f"read by {subject()}"
        return types.ReadResourceResult(contents=[types.TextResourceContents(uri=str(params.uri), text=text)])

    async def list_prompts(_ctx: Any, _params: object) -> types.ListPromptsResult:
        return types.ListPromptsResult(prompts=[types.Prompt(name=f"greet_{subject()}")])

    async def get_prompt(_ctx: Any, _params: types.GetPromptRequestParams) -> types.GetPromptResult:
        said = types.PromptMessage(role="user", content=types.TextContent(text=f"greet {subject()}"))
        return types.GetPromptResult(messages=[said])

    return Server(
        "personal",
        on_list_tools=list_tools,
        on_call_tool=call_tool,
        on_list_resources=list_resources,
        on_read_resource=read_resource,
        on_list_prompts=list_prompts,
        on_get_prompt=get_prompt,
        on_subscriptions_listen=ListenHandler(bus),
    )
