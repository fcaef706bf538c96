"""One job through the Python SDK 2.x; jobs as in `jobs.py`."""

from __future__ import annotations

from typing import Any

from jobs import Heard, main, wire
from mcp import Client, MCPError, StdioServerParameters
from mcp.client.streamable_http import create_mcp_http_client, streamable_http_client


class Asking:
    def __init__(self, client: Client) -> None:
        self._client = client

    async def tools(self) -> list[Any]:
        tools: list[Any] = []
        cursor: str | None = None
        while True:
            page = await self._client.list_tools(cursor=cursor)
            tools += map(wire, page.tools)
            cursor = page.next_cursor
            if cursor is None:
                return tools

    async def call(self, name: str, arguments: dict[str, Any]) -> Any:
        try:
            return wire(await self._client.call_tool(name, arguments))
        except MCPError as error:
            return {"error": {"code": error.code, "message": error.message}}


async def run(job: dict[str, Any]) -> dict[str, Any]:
    heard = Heard()
    if job["transport"] == "stdio":
        target: Any = StdioServerParameters(
            command=job["command"], args=job["args"], env=job["env"], cwd=job.get("cwd")
        )
    else:
        target = streamable_http_client(job["url"], http_client=create_mcp_http_client(headers=job.get("headers")))
    async with Client(target, mode=job.get("mode", "auto"), cache=None, message_handler=heard.note) as client:
        return await heard.done(Asking(client), client.protocol_version, job["steps"])


if __name__ == "__main__":
    main(run)
