"""A server on HTTP with SSE at /sse, the transport before streamable HTTP, as the SDK makes one. Arguments: the port,
and a token that has to be shown, if any."""

from __future__ import annotations

import sys

import uvicorn
from mcp.server.mcpserver import MCPServer
from starlette.types import Receive, Scope, Send

server = MCPServer("event-stream", instructions="Add.")


@server.tool()
def add(a: int, b: int) -> int:
    """Add two numbers"""
    return a + b


@server.tool()
def long(characters: int) -> str:
    """Return a long text"""
    return "x" * characters


def main(port: str, token: str = "") -> None:
    app = server.sse_app()

    async def guarded(scope: Scope, receive: Receive, send: Send) -> None:
        shown = dict(scope.get("headers", ())).get(b"authorization", b"").decode()
        if scope["type"] == "http" and token and shown != f"Bearer {token}":
            await send({"type": "http.response.start", "status": 401, "headers": []})
            await send({"type": "http.response.body", "body": b""})
            return
        await app(scope, receive, send)

    uvicorn.run(guarded, host="127.0.0.1", port=int(port), log_level="warning")


if __name__ == "__main__":
    main(*sys.argv[1:])
