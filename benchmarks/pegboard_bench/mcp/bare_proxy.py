"""The least that a proxy on the SDK can do: one low-level `Server` before one `Client`, results as they come.

Run by path: `python bare_proxy.py stdio|PORT COMMAND [ARGUMENT …]`.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import mcp_types as types
from mcp import Client, StdioServerParameters
from mcp.server.lowlevel import Server
from mcp.server.stdio import stdio_server
from pydantic import TypeAdapter

ANY: TypeAdapter[dict[str, Any]] = TypeAdapter(dict[str, Any])


class Proxy:
    """Forwards both requests; remembers the schemas, which the SDK asks for at every call on HTTP."""

    def __init__(self, command: list[str]) -> None:
        self._target = StdioServerParameters(command=command[0], args=command[1:])
        self._client: Client | None = None
        self._schemas: dict[str, dict[str, Any]] = {}

    @asynccontextmanager
    async def lifespan(self, _server: Server[Any]) -> AsyncIterator[dict[str, Any]]:
        async with Client(self._target, cache=None) as self._client:
            await self.list_tools(None, None)
            yield {}

    async def list_tools(self, _ctx: Any, _params: Any) -> dict[str, Any]:
        result = await self._forward(types.ListToolsRequest())
        self._schemas = {tool["name"]: tool["inputSchema"] for tool in result["tools"]}
        return result

    async def call_tool(self, _ctx: Any, params: types.CallToolRequestParams) -> dict[str, Any]:
        arguments = types.CallToolRequestParams(name=params.name, arguments=params.arguments)
        return await self._forward(types.CallToolRequest(params=arguments))

    def schema(self, name: str) -> dict[str, Any] | None:
        return self._schemas.get(name)

    async def _forward(self, request: types.ClientRequest) -> dict[str, Any]:
        if self._client is None:
            raise RuntimeError("The proxy has not been started")
        return await self._client.session.send_request(request, ANY)  # type: ignore[type-var]


def wire(proxy: Proxy) -> Server[Any]:
    return Server(
        "bare",
        lifespan=proxy.lifespan,
        on_list_tools=proxy.list_tools,  # type: ignore[arg-type]  # the SDK takes dictionaries as well
        on_call_tool=proxy.call_tool,  # type: ignore[arg-type]
        get_tool_input_schema=proxy.schema,
    )


async def serve_stdio(server: Server[Any]) -> None:
    async with stdio_server() as (read, write):
        await server.run(read, write, server.create_initialization_options())


if __name__ == "__main__":
    _, where, *behind = sys.argv
    if where == "stdio":
        asyncio.run(serve_stdio(wire(Proxy(behind))))
    else:
        import uvicorn

        app = wire(Proxy(behind)).streamable_http_app()
        uvicorn.run(app, host="127.0.0.1", port=int(where), log_level="warning", access_log=False)
