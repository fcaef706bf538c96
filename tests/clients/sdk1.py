"""One job through the Python SDK 1.x, run by its own environment; jobs as in `jobs.py`."""

from __future__ import annotations

from contextlib import AsyncExitStack
from typing import Any

from jobs import Heard, main, wire
from mcp import ClientSession, McpError, StdioServerParameters
from mcp.client.stdio import stdio_client
from mcp.client.streamable_http import streamablehttp_client


class Asking:
    def __init__(self, session: ClientSession) -> None:
        self._session = session

    async def tools(self) -> list[Any]:
        tools: list[Any] = []
        cursor: str | None = None
        while True:
            page = await self._session.list_tools(cursor)
            tools += map(wire, page.tools)
            cursor = page.nextCursor
            if cursor is None:
                return tools

    async def call(self, name: str, arguments: dict[str, Any]) -> Any:
        try:
            return wire(await self._session.call_tool(name, arguments))
        except McpError as error:
            return {"error": {"code": error.error.code, "message": error.error.message}}


async def run(job: dict[str, Any]) -> dict[str, Any]:
    heard = Heard()
    async with AsyncExitStack() as stack:
        if job["transport"] == "stdio":
            parameters = StdioServerParameters(
                command=job["command"], args=job["args"], env=job["env"], cwd=job.get("cwd")
            )
            streams = await stack.enter_async_context(stdio_client(parameters))
        else:
            streams = await stack.enter_async_context(streamablehttp_client(job["url"], headers=job.get("headers")))
        session = await stack.enter_async_context(ClientSession(streams[0], streams[1], message_handler=heard.note))
        greeting = await session.initialize()
        return await heard.done(Asking(session), greeting.protocolVersion, job["steps"])


if __name__ == "__main__":
    main(run)
