"""A streamable HTTP server of the handshake era that forgets its sessions when told to, and has a tool more each time.

forgetful.py PORT BODY     # BODY is what its 404 says: `json`, as the SDKs' own servers do, or `text`

POST /forget answers how many sessions there have been; after POST /forget?always each call finds its session gone.
"""

from __future__ import annotations

if __name__ == "__main__":
    import atexit
    import gc

    gc.disable()  # while it imports and in its short life, which is a quarter less
    atexit.register(gc.freeze)

import sys
from typing import Any

import mcp_types as types
import uvicorn
from mcp.server.lowlevel import Server
from starlette.responses import JSONResponse, PlainTextResponse, Response

PORT, BODY = sys.argv[1:]
NOT_FOUND: dict[str, Response] = {
    "json": JSONResponse(
        {"jsonrpc": "2.0", "id": None, "error": {"code": -32001, "message": "Session not found"}}, 404
    ),
    "text": PlainTextResponse("Not Found", 404),
}
TOOLS = [types.Tool(name="hello", description="Say hello", input_schema={"type": "object"})]


async def list_tools(_ctx: Any, _params: Any) -> types.ListToolsResult:
    return types.ListToolsResult(tools=TOOLS)


async def call_tool(_ctx: Any, params: types.CallToolRequestParams) -> types.CallToolResult:
    return types.CallToolResult(content=[types.TextContent(text=params.name)])


class Forgetful:
    def __init__(self, app: Any) -> None:
        self.app = app
        self.seen: set[bytes] = set()
        self.forgotten: set[bytes] = set()
        self.always = False

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        headers = dict(scope.get("headers", ()))
        session = headers.get(b"mcp-session-id")
        if session:
            self.seen.add(session)
        if scope.get("path") == "/forget":
            self.forgotten |= self.seen
            self.always = b"always" in scope["query_string"]
            TOOLS.append(TOOLS[0].model_copy(update={"name": f"tool{len(TOOLS)}"}))
            await JSONResponse(len(self.seen))(scope, receive, send)
        elif headers.get(b"mcp-protocol-version") == b"2026-07-28":
            await PlainTextResponse("Bad Request", 400)(scope, receive, send)
        elif session in self.forgotten:
            await NOT_FOUND[BODY](scope, receive, send)
        elif self.always and scope.get("method") == "POST":
            message = await receive()
            refused = b'"tools/call"' in message["body"]
            await (NOT_FOUND[BODY] if refused else self.app)(scope, again(message, receive), send)
        else:
            await self.app(scope, receive, send)


def again(message: Any, receive: Any) -> Any:
    """The messages of a request from the start, although the first was read."""
    messages = [message]

    async def replay() -> Any:
        return messages.pop() if messages else await receive()

    return replay


server: Server[Any] = Server("forgetful", version="1.0", on_list_tools=list_tools, on_call_tool=call_tool)

if __name__ == "__main__":
    uvicorn.run(Forgetful(server.streamable_http_app()), host="127.0.0.1", port=int(PORT), log_level="warning")
