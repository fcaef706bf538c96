"""One HTTP server for what plays need: the model as an endpoint, web pages, and MCP servers of distractors."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any

from aiohttp import web

from pegboard_bench.whole_tasks.model import Model
from pegboard_bench.whole_tasks.workspace import PAGES

PROTOCOL = "2025-06-18"
REFUSAL = "Not signed in."
"""What every distractor answers: its service is not there."""

Definitions = Mapping[str, Sequence[Mapping[str, Any]]]
"""Tools as MCP lists them, by server."""


@asynccontextmanager
async def site(model: Model, distractors: Definitions) -> AsyncIterator[str]:
    """The address of a server on this machine."""

    async def complete(request: web.Request) -> web.Response:
        message = await model.answer(await request.json())
        choice = {"index": 0, "message": message, "finish_reason": "tool_calls" if "tool_calls" in message else "stop"}
        usage = {"prompt_tokens": 0, "completion_tokens": 0, "total_tokens": 0}
        said = {"id": "chatcmpl-1", "object": "chat.completion", "created": 0, "model": model.name}
        return web.json_response(said | {"choices": [choice], "usage": usage})

    async def page(request: web.Request) -> web.Response:
        text = PAGES.get(request.match_info["name"])
        return web.Response(text=text or "", content_type="text/html", status=200 if text else 404)

    async def mcp(request: web.Request) -> web.Response:
        if request.method != "POST":
            return web.Response(status=405)
        said = json.loads(await request.read())
        if "id" not in said:
            return web.Response(status=202)
        result = answered(said["method"], distractors[request.match_info["name"]], request.match_info["name"])
        found = {"result": result} if result is not None else {"error": {"code": -32601, "message": "No such method"}}
        return web.json_response({"jsonrpc": "2.0", "id": said["id"], **found})

    app = web.Application(client_max_size=64 * 2**20)
    app.router.add_post("/v1/chat/completions", complete)
    app.router.add_get("/pages/{name}", page)
    app.router.add_route("*", "/mcp/{name}", mcp)
    runner = web.AppRunner(app)
    await runner.setup()
    place = web.TCPSite(runner, "127.0.0.1", 0)
    await place.start()
    try:
        yield f"http://127.0.0.1:{runner.addresses[0][1]}"
    finally:
        await runner.cleanup()


def answered(method: str, tools: Sequence[Mapping[str, Any]], name: str) -> dict[str, Any] | None:
    """The result of a request of the handshake era; None for one that such a server does not know."""
    match method:
        case "initialize":
            server = {"name": name, "version": "1"}
            return {"protocolVersion": PROTOCOL, "capabilities": {"tools": {}}, "serverInfo": server}
        case "tools/list":
            return {"tools": [*tools]}
        case "tools/call":
            return {"content": [{"type": "text", "text": REFUSAL}], "isError": True}
        case "ping":
            return {}
    return None
