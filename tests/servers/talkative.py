"""An MCP server that asks, tells and announces: `python talkative.py [PORT] legacy|modern`.

Names end with the era, so that one of each can stand behind one gateway. `legacy` speaks the handshake era alone.
"""

from __future__ import annotations

if __name__ == "__main__":
    import atexit
    import gc

    gc.disable()  # while it imports and in its short life, which is a quarter less
    atexit.register(gc.freeze)

import asyncio
import base64
import sys
from pathlib import Path
from typing import Any

import mcp_types as types
from mcp.server.lowlevel import NotificationOptions, Server
from mcp.server.runner import serve_loop
from mcp.server.stdio import stdio_server
from mcp.server.subscriptions import (
    InMemorySubscriptionBus,
    ListenHandler,
    PromptsListChanged,
    ResourcesListChanged,
    ResourceUpdated,
)
from mcp.shared.exceptions import MCPError
from mcp.shared.message import ServerMessageMetadata

ERA = sys.argv[-1]
NOTE = f"note://{ERA}/note"
BYTES = base64.b64encode(b"\x00\x01\xff").decode()
WORD = {"type": "object", "properties": {"word": {"type": "string"}}, "required": ["word"]}
QUESTIONS: dict[str, dict[str, Any]] = {
    "elicit": {"method": "elicitation/create", "params": {"message": "A word?", "requestedSchema": WORD}},
    "roots": {"method": "roots/list", "params": {}},
    "sample": {
        "method": "sampling/createMessage",
        "params": {"messages": [{"role": "user", "content": {"type": "text", "text": "Go on"}}], "maxTokens": 9},
    },
}
KINDS = {
    "elicit": (types.ElicitRequest, types.ElicitResult),
    "roots": (types.ListRootsRequest, types.ListRootsResult),
    "sample": (types.CreateMessageRequest, types.CreateMessageResult),
}
RESULT: dict[str, Any] = {
    "content": [
        {"type": "text", "text": "héllo", "annotations": {"audience": ["user"], "priority": 0.5}},
        {"type": "image", "data": BYTES, "mimeType": "image/png", "_meta": {"vendor/part": 1}},
        {"type": "audio", "data": BYTES, "mimeType": "audio/wav"},
        {"type": "resource_link", "uri": NOTE, "name": "note", "description": "A note", "mimeType": "text/plain"},
        {"type": "resource", "resource": {"uri": NOTE, "mimeType": "text/plain", "text": "embedded"}},
        {"type": "resource", "resource": {"uri": "note://blob", "mimeType": "x/y", "blob": BYTES}},
    ],
    "structuredContent": {"n": 1, "nothing": None, "deep": [{"x": "y"}]},
    "_meta": {"vendor/y": [1, None]},
}
TEXT, PATH = {"type": "string"}, {"path": {"type": "string"}}
TOOLS: dict[str, dict[str, Any]] = {
    "parts": {},
    "meta": {},
    "fails": {},
    "raises": {},
    "talk": {"tag": TEXT},
    "ask": {"what": TEXT, "tag": TEXT},
    "two_questions": {},
    "wait": PATH,
    "touch": {},
    "change": {},
}


def text(said: str) -> dict[str, Any]:
    return {"content": [{"type": "text", "text": said}]}


async def list_tools(_ctx: Any, _params: Any) -> dict[str, Any]:
    return holding(
        tools=[
            {
                "name": f"{name}_{ERA}",
                "description": f"The {name} of the {ERA} server",
                "inputSchema": {"type": "object", "properties": properties, "required": list(properties)},
            }
            for name, properties in TOOLS.items()
        ]
    )


async def call_tool(ctx: Any, params: types.CallToolRequestParams) -> dict[str, Any]:
    arguments = params.arguments or {}
    match params.name.removesuffix(f"_{ERA}"):
        case "parts":
            return complete_with(**RESULT)
        case "meta":
            sent = {key: each for key, each in (ctx.params.get("_meta") or {}).items() if key.startswith("vendor/")}
            return complete_with(**text("meta"), structuredContent=sent)
        case "fails":
            return complete_with(**text("it is broken"), isError=True)
        case "raises":
            raise MCPError(-32050, "custom protocol error", {"why": ["test", None]})
        case "talk":
            for step in (1, 2, 3):
                await ctx.session.report_progress(step, 3, f"{arguments['tag']} {step}")
                await ctx.session.send_log_message(
                    "warning", {"said": f"{arguments['tag']} {step}"}, "talk", related_request_id=ctx.request_id
                )
            return complete_with(**text(arguments["tag"]))
        case "ask":
            told = await answers(ctx, params, arguments["what"])
            return told if "inputRequests" in told else complete_with(**text(f"{arguments['tag']}: {told['said']}"))
        case "two_questions":
            return await two_questions(ctx, params)
        case "wait":
            path = Path(arguments["path"])
            path.write_text("started")
            try:
                await asyncio.sleep(60)
            except asyncio.CancelledError:
                path.write_text("cancelled")
                raise
        case "touch":
            await bus.publish(ResourceUpdated(NOTE))
            await ctx.session.send_resource_updated(NOTE)
            return complete_with(**text("touched"))
        case "change":
            for event in (PromptsListChanged(), ResourcesListChanged()):
                await bus.publish(event)
            await ctx.session.send_prompt_list_changed()
            await ctx.session.send_resource_list_changed()
            PROMPTS.append({"name": f"later_{len(PROMPTS)}_{ERA}"})
            return complete_with(**text("changed"))
    raise MCPError(types.INVALID_PARAMS, f"Unknown tool: {params.name}")


async def answers(ctx: Any, params: types.CallToolRequestParams, what: str) -> dict[str, Any]:
    """What the client answered, as `said`; or the question, where it can only be asked with a result."""
    if ctx.session.can_send_request:
        request, result = KINDS[what]
        where = ServerMessageMetadata(related_request_id=ctx.request_id)
        told = await ctx.session.send_request(request.model_validate(QUESTIONS[what]), result, metadata=where)
    elif params.input_responses:
        assert params.request_state == f"{what}-state"
        told = params.input_responses["question"]
    else:
        return required({"question": QUESTIONS[what]}, f"{what}-state")
    match told:
        case types.ElicitResult():
            return {"said": f"{told.action} {(told.content or {}).get('word')}"}
        case types.ListRootsResult():
            return {"said": " ".join(str(root.uri) for root in told.roots)}
    return {"said": told.content.text}


async def two_questions(ctx: Any, params: types.CallToolRequestParams) -> dict[str, Any]:
    """One after the other, in two rounds where there are rounds."""
    if ctx.session.can_send_request:
        said = [(await answers(ctx, params, "elicit"))["said"] for _ in range(2)]
        return complete_with(**text(" and ".join(said)))
    told = params.input_responses or {}
    if params.request_state is None:
        return required({"one": QUESTIONS["elicit"]}, "first")
    if params.request_state == "first":
        return required({"two": QUESTIONS["elicit"]}, f"second {told['one'].content['word']}")  # type: ignore[union-attr,index]
    word = told["two"].content["word"]  # type: ignore[union-attr,index]
    return complete_with(**text(f"accept {params.request_state.split()[1]} and accept {word}"))


def required(questions: dict[str, Any], state: str) -> dict[str, Any]:
    return {"resultType": "input_required", "inputRequests": questions, "requestState": state}


def complete_with(**parts: Any) -> dict[str, Any]:
    return parts | ({"resultType": "complete"} if ERA == "modern" else {})


def holding(**parts: Any) -> dict[str, Any]:
    return complete_with(**parts) | ({"ttlMs": 0, "cacheScope": "private"} if ERA == "modern" else {})


async def list_resources(_ctx: Any, params: types.PaginatedRequestParams | None) -> dict[str, Any]:
    """In two pages."""
    if params is None or params.cursor is None:
        return holding(resources=[{"uri": NOTE, "name": "note", "_meta": {"vendor/r": 1}}], nextCursor="2")
    return holding(resources=[{"uri": f"note://{ERA}/second", "name": "second"}])


async def list_templates(_ctx: Any, _params: Any) -> dict[str, Any]:
    return holding(resourceTemplates=[{"uriTemplate": f"page://{ERA}/{{number}}", "name": "page"}])


async def read_resource(_ctx: Any, params: types.ReadResourceRequestParams) -> dict[str, Any]:
    uri = str(params.uri)
    if uri.startswith((f"note://{ERA}/", f"page://{ERA}/", f"unlisted://{ERA}/")):
        return holding(contents=[{"uri": uri, "mimeType": "x/y", "blob": BYTES, "_meta": {"vendor/c": None}}])
    raise MCPError(types.INVALID_PARAMS, "Resource not found", {"uri": uri})


PROMPTS: list[dict[str, Any]] = [
    {"name": f"greet_{ERA}", "description": "Greet", "arguments": [{"name": "whom", "required": True}]}
]


async def list_prompts(_ctx: Any, _params: Any) -> dict[str, Any]:
    return holding(prompts=PROMPTS)


async def get_prompt(_ctx: Any, params: types.GetPromptRequestParams) -> dict[str, Any]:
    content = {"type": "image", "data": BYTES, "mimeType": "image/png"}
    said = text(f"Hello, {(params.arguments or {})['whom']}")["content"][0]
    return complete_with(messages=[{"role": "user", "content": each} for each in (said, content)], description="Hi")


async def complete(_ctx: Any, params: types.CompleteRequestParams) -> dict[str, Any]:
    of = params.ref.name if isinstance(params.ref, types.PromptReference) else str(params.ref.uri)
    return complete_with(completion={"values": [f"{params.argument.value}…{of}"], "total": 1, "hasMore": False})


async def nothing(_ctx: Any, _params: Any) -> dict[str, Any]:
    return {}


async def discover(ctx: Any, _params: Any) -> types.DiscoverResult:
    """Nothing of 2026-07-28: clients then shake hands."""
    capabilities = server.get_capabilities(protocol_version=ctx.protocol_version)
    return types.DiscoverResult(supported_versions=["2025-11-25"], capabilities=capabilities)


bus = InMemorySubscriptionBus()
handlers: dict[str, Any] = {
    "on_list_tools": list_tools,
    "on_call_tool": call_tool,
    "on_list_resources": list_resources,
    "on_list_resource_templates": list_templates,
    "on_read_resource": read_resource,
    "on_subscribe_resource": nothing,
    "on_unsubscribe_resource": nothing,
    "on_list_prompts": list_prompts,
    "on_get_prompt": get_prompt,
    "on_completion": complete,
    "on_subscriptions_listen": ListenHandler(bus),
}


class Announcing(Server[Any]):
    """Says on every transport that its lists change."""

    def create_initialization_options(
        self, options: NotificationOptions | None = None, *more: Any, **named: Any
    ) -> Any:
        changing = NotificationOptions(tools_changed=True, prompts_changed=True, resources_changed=True)
        return super().create_initialization_options(options or changing, *more, **named)


server = Announcing("talkative", version="1.0", **handlers)
server.add_request_handler("logging/setLevel", types.SetLevelRequestParams, nothing)
if ERA == "legacy":
    server.add_request_handler("server/discover", types.RequestParams, discover)


async def main() -> None:
    async with stdio_server() as (read, write):
        if ERA == "modern":
            await server.run(read, write, server.create_initialization_options())
        async with server.lifespan(server) as state:
            await serve_loop(server, read, write, lifespan_state=state)


if __name__ == "__main__":
    if len(sys.argv) > 2:
        import uvicorn

        place: dict[str, Any] = {"host": "127.0.0.1", "port": int(sys.argv[1])}
        waits = 600  # a call that is sent when an idle connection is closed is lost, and a busy machine sends it then
        uvicorn.run(server.streamable_http_app(), **place, log_level="warning", timeout_keep_alive=waits)
    else:
        asyncio.run(main())
