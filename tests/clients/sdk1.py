"""One job through the Python SDK 1.x, run by its own environment; jobs as in `sdk2.py`."""

from __future__ import annotations

import asyncio
import json
import sys
from contextlib import AsyncExitStack
from typing import Any

from mcp import ClientSession, McpError, StdioServerParameters
from mcp.client.stdio import stdio_client
from mcp.client.streamable_http import streamablehttp_client


async def run(job: dict[str, Any]) -> dict[str, Any]:
    notified: list[str] = []
    before = 0
    told = asyncio.Condition()

    async def on_message(message: Any) -> None:
        if hasattr(getattr(message, "root", None), "method"):
            notified.append(message.root.method)
            async with told:
                told.notify_all()

    async def step(session: ClientSession, kind: str, *rest: Any) -> Any:
        nonlocal before
        match kind:
            case "list":
                tools: list[Any] = []
                cursor: str | None = None
                while True:
                    page = await session.list_tools(cursor)
                    tools += [tool.model_dump(mode="json", by_alias=True, exclude_unset=True) for tool in page.tools]
                    cursor = page.nextCursor
                    if cursor is None:
                        return tools
            case "call":
                before = len(notified)
                try:
                    result = await session.call_tool(rest[0], rest[1])
                except McpError as error:
                    return {"error": {"code": error.error.code, "message": error.error.message}}
                return result.model_dump(mode="json", by_alias=True, exclude_unset=True)
            case _:
                async with asyncio.timeout(30), told:
                    await told.wait_for(lambda: rest[0] in notified[before:])
                return notified[before:]

    async with AsyncExitStack() as stack:
        if job["transport"] == "stdio":
            parameters = StdioServerParameters(
                command=job["command"], args=job["args"], env=job["env"], cwd=job.get("cwd")
            )
            streams = await stack.enter_async_context(stdio_client(parameters))
        else:
            streams = await stack.enter_async_context(streamablehttp_client(job["url"], headers=job.get("headers")))
        session = await stack.enter_async_context(ClientSession(streams[0], streams[1], message_handler=on_message))
        greeting = await session.initialize()
        results = [await step(session, *each) for each in job["steps"]]
        return {"protocol": str(greeting.protocolVersion), "results": results, "notified": notified}


if __name__ == "__main__":
    print(json.dumps(asyncio.run(run(json.load(sys.stdin)))))
