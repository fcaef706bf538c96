"""A server that has everything the protocol's test suite asks for: `python -m pegboard_bench.conformance.server PORT`.

Without a port it serves on standard streams.
"""

from __future__ import annotations

import asyncio
import sys
from typing import Any

import mcp_types as types
import uvicorn
from mcp import MCPError
from mcp.server.lowlevel import NotificationOptions, Server
from mcp.server.request_state import RequestStateBoundary, RequestStateSecurity
from mcp.server.stdio import stdio_server
from mcp.server.subscriptions import InMemorySubscriptionBus, ListenHandler, PromptsListChanged, ToolsListChanged

from pegboard_bench.conformance import skills, tasks, tools
from pegboard_bench.conformance.tools import IMAGE, PIXEL, Context, Result, text

COMPLETE = {"resultType": "complete"}
CACHED = COMPLETE | {"ttlMs": 60_000, "cacheScope": "private"}
"""What revision 2026-07-28 wants to know of results, and of lists; the SDK leaves it out in the handshake era."""
RESOURCES = [
    {"uri": "test://static-text", "name": "text", "description": "A static text", "mimeType": "text/plain"},
    {"uri": "test://static-binary", "name": "binary", "description": "A static image", "mimeType": "image/png"},
    {"uri": "test://watched-resource", "name": "watched", "description": "A text to watch", "mimeType": "text/plain"},
]
TEMPLATES = [
    {
        "uriTemplate": "test://template/{id}/data",
        "name": "template",
        "description": "Data by its number",
        "mimeType": "application/json",
    }
]
TEXTS = {
    "test://static-text": "This is the content of the static text resource.",
    "test://watched-resource": "Watched.",
}


def prompt(name: str, *arguments: str) -> Result:
    wanted = [{"name": each, "description": f"The {each}", "required": True} for each in arguments]
    return {"name": name, "description": f"The prompt of {name}", "arguments": wanted}


PROMPTS = [
    prompt("test_simple_prompt"),
    prompt("test_prompt_with_arguments", "arg1", "arg2"),
    prompt("test_prompt_with_embedded_resource", "resourceUri"),
    prompt("test_prompt_with_image"),
    prompt("test_input_required_result_prompt"),
]
extra: list[Result] = []
"""A tool that comes and goes."""
bus = InMemorySubscriptionBus()
jobs = tasks.Tasks(ListenHandler(bus))


async def list_tools(_ctx: Context, _params: Any) -> Result:
    return {"tools": [*tools.definitions(), *tasks.DEFINITIONS, *extra]} | CACHED


async def call_tool(ctx: Context, params: types.CallToolRequestParams) -> Result:
    if params.name in tasks.SCHEMAS:
        return COMPLETE | await jobs.call(ctx, params)
    try:
        result = await tools.call(ctx, params)
    except tools.Unanswered as question:
        result = tools.required({tools.ASKED: question.request})
    if params.name == "test_trigger_tool_change":
        extra[:] = [] if extra else [tools.EXTRA]
        await bus.publish(ToolsListChanged())
        await ctx.session.send_tool_list_changed()
    if params.name == "test_trigger_prompt_change":
        await bus.publish(PromptsListChanged())
        await ctx.session.send_prompt_list_changed()
    return COMPLETE | result


async def list_resources(_ctx: Context, _params: Any) -> Result:
    return {"resources": [*RESOURCES, *map(skills.resource, skills.FILES)]} | CACHED


async def list_templates(_ctx: Context, _params: Any) -> Result:
    return {"resourceTemplates": TEMPLATES} | CACHED


async def read_resource(_ctx: Context, params: types.ReadResourceRequestParams) -> Result:
    uri = str(params.uri)
    number = uri.removeprefix("test://template/").removesuffix("/data")
    if uri in skills.FILES:
        content = {"uri": uri, "mimeType": "text/markdown", "text": skills.FILES[uri]}
    elif uri in TEXTS:
        content = {"uri": uri, "mimeType": "text/plain", "text": TEXTS[uri]}
    elif uri == "test://static-binary":
        content = {"uri": uri, "mimeType": "image/png", "blob": PIXEL}
    elif uri == f"test://template/{number}/data":
        data = f'{{"id":"{number}","templateTest":true,"data":"Data for ID: {number}"}}'
        content = {"uri": uri, "mimeType": "application/json", "text": data}
    else:
        raise MCPError(types.INVALID_PARAMS, "Resource not found", {"uri": uri})
    return {"contents": [content]} | CACHED


async def subscribe(_ctx: Context, _params: Any) -> Result:
    return {}


async def list_prompts(_ctx: Context, _params: Any) -> Result:
    return {"prompts": PROMPTS} | CACHED


async def get_prompt(_ctx: Context, params: types.GetPromptRequestParams) -> Result:
    given = params.arguments or {}
    match params.name:
        case "test_simple_prompt":
            return said(text("This is a simple prompt for testing.")["content"][0])
        case "test_prompt_with_arguments":
            words = f"Prompt with arguments: arg1='{given['arg1']}', arg2='{given['arg2']}'"
            return said(text(words)["content"][0])
        case "test_prompt_with_embedded_resource":
            resource = tools.embedded(given["resourceUri"], "Embedded resource content for testing.")
            return said(resource, text("Please process the embedded resource above.")["content"][0])
        case "test_prompt_with_image":
            return said(IMAGE, text("Please analyze the image above.")["content"][0])
        case "test_input_required_result_prompt":
            told = (params.input_responses or {}).get("user_context")
            if told is None:
                schema = {"type": "object", "properties": {"context": {"type": "string"}}, "required": ["context"]}
                question = tools.elicitation("What context should the prompt use?", schema)
                return tools.required({"user_context": question})
            return said(text(f"The context is {tools.plain(told).get('content')}.")["content"][0])
    raise MCPError(types.INVALID_PARAMS, f"Unknown prompt: {params.name}")


def said(*contents: Result) -> Result:
    return COMPLETE | {"messages": [{"role": "user", "content": content} for content in contents]}


async def complete(_ctx: Context, params: types.CompleteRequestParams) -> Result:
    words = [word for word in ("paris", "park", "party") if word.startswith(params.argument.value)]
    return COMPLETE | {"completion": {"values": words, "total": len(words), "hasMore": False}}


async def set_level(_ctx: Context, _params: Any) -> Result:
    return {}


def made() -> Server[Any]:
    """The server, for both protocol eras."""
    handlers: dict[str, Any] = {
        "on_list_tools": list_tools,
        "on_call_tool": call_tool,
        "on_list_resources": list_resources,
        "on_list_resource_templates": list_templates,
        "on_read_resource": read_resource,
        "on_subscribe_resource": subscribe,
        "on_unsubscribe_resource": subscribe,
        "on_list_prompts": list_prompts,
        "on_get_prompt": get_prompt,
        "on_completion": complete,
        "on_subscriptions_listen": jobs.listen,
    }
    schemas = {each["name"]: each["inputSchema"] for each in (*tools.definitions(), *tasks.DEFINITIONS)}
    server: Server[Any] = Server("conforming", version="1.0", get_tool_input_schema=schemas.get, **handlers)
    server.add_request_handler("logging/setLevel", types.SetLevelRequestParams, set_level)
    jobs.join(server)
    skills.join(server)
    server.middleware.append(RequestStateBoundary(RequestStateSecurity.ephemeral(), default_audience="conforming"))
    return server


async def on_streams(server: Server[Any]) -> None:
    options = NotificationOptions(tools_changed=True, prompts_changed=True, resources_changed=True)
    async with stdio_server() as (read, write):
        await server.run(read, write, server.create_initialization_options(options))


if __name__ == "__main__":
    if len(sys.argv) > 1:
        app = made().streamable_http_app()
        uvicorn.run(app, host="127.0.0.1", port=int(sys.argv[1]), log_level="warning")
    else:
        asyncio.run(on_streams(made()))
