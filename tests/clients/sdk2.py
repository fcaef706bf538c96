"""One job through the Python SDK 2.x. Standard input: the job; standard output: what the client was given.

A job: {"transport": "stdio"|"http", "mode": "auto"|"legacy", "command", "args", "env" | "url", "headers", "steps"};
a step: ["list"], ["call", NAME, ARGUMENTS] or ["await", NOTIFICATION], which has to come after the last call began.
The same for every driver beside this one.
"""

from __future__ import annotations

import asyncio
import json
import sys
from typing import Any

from mcp import Client, MCPError, StdioServerParameters
from mcp.client.streamable_http import create_mcp_http_client, streamable_http_client


async def run(job: dict[str, Any]) -> dict[str, Any]:
    notified: list[str] = []
    before = 0
    told = asyncio.Condition()

    async def on_message(message: Any) -> None:
        if hasattr(message, "method"):
            notified.append(message.method)
            async with told:
                told.notify_all()

    async def step(client: Client, kind: str, *rest: Any) -> Any:
        nonlocal before
        match kind:
            case "list":
                tools: list[Any] = []
                cursor: str | None = None
                while True:
                    page = await client.list_tools(cursor=cursor)
                    tools += [tool.model_dump(mode="json", by_alias=True, exclude_unset=True) for tool in page.tools]
                    cursor = page.next_cursor
                    if cursor is None:
                        return tools
            case "call":
                before = len(notified)
                try:
                    result = await client.call_tool(rest[0], rest[1])
                except MCPError as error:
                    return {"error": {"code": error.code, "message": error.message}}
                return result.model_dump(mode="json", by_alias=True, exclude_unset=True)
            case _:
                async with asyncio.timeout(30), told:
                    await told.wait_for(lambda: rest[0] in notified[before:])
                return notified[before:]

    if job["transport"] == "stdio":
        target: Any = StdioServerParameters(
            command=job["command"], args=job["args"], env=job["env"], cwd=job.get("cwd")
        )
    else:
        target = streamable_http_client(job["url"], http_client=create_mcp_http_client(headers=job.get("headers")))
    async with Client(target, mode=job.get("mode", "auto"), cache=None, message_handler=on_message) as client:
        results = [await step(client, *each) for each in job["steps"]]
        return {"protocol": client.protocol_version, "results": results, "notified": notified}


if __name__ == "__main__":
    print(json.dumps(asyncio.run(run(json.load(sys.stdin)))))
