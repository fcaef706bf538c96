"""One job through FastMCP's client, run by its own environment; jobs as in `sdk2.py`."""

from __future__ import annotations

import asyncio
import json
import sys
from typing import Any

from fastmcp import Client
from fastmcp.client.transports import StdioTransport, StreamableHttpTransport
from mcp import MCPError


async def run(job: dict[str, Any]) -> dict[str, Any]:
    notified: list[str] = []
    before = 0
    told = asyncio.Condition()

    async def on_message(message: Any) -> None:
        if hasattr(message, "method"):
            notified.append(message.method)
            async with told:
                told.notify_all()

    async def step(client: Client[Any], kind: str, *rest: Any) -> Any:
        nonlocal before
        match kind:
            case "list":
                tools = await client.list_tools()
                return [tool.model_dump(mode="json", by_alias=True, exclude_unset=True) for tool in tools]
            case "call":
                before = len(notified)
                try:
                    result = await client.call_tool_mcp(rest[0], rest[1])
                except MCPError as error:
                    return {"error": {"code": error.code, "message": error.message}}
                return result.model_dump(mode="json", by_alias=True, exclude_unset=True)
            case _:
                async with asyncio.timeout(30), told:
                    await told.wait_for(lambda: rest[0] in notified[before:])
                return notified[before:]

    if job["transport"] == "stdio":
        target: Any = StdioTransport(
            command=job["command"], args=job["args"], env=job["env"], cwd=job.get("cwd"), keep_alive=False
        )
    else:
        target = StreamableHttpTransport(job["url"], headers=job.get("headers"))
    async with Client(target, mode=job.get("mode", "auto"), message_handler=on_message) as client:
        results = [await step(client, *each) for each in job["steps"]]
        return {"protocol": client.protocol_version, "results": results, "notified": notified}


if __name__ == "__main__":
    print(json.dumps(asyncio.run(run(json.load(sys.stdin)))))
