"""One job through FastMCP's client, run by its own environment; jobs as in `jobs.py`."""

from __future__ import annotations

from typing import Any

from fastmcp import Client
from fastmcp.client.transports import StdioTransport, StreamableHttpTransport
from jobs import Heard, main, wire
from mcp import MCPError


class Asking:
    def __init__(self, client: Client[Any]) -> None:
        self._client = client

    async def tools(self) -> list[Any]:
        return list(map(wire, await self._client.list_tools()))

    async def call(self, name: str, arguments: dict[str, Any]) -> Any:
        try:
            return wire(await self._client.call_tool_mcp(name, arguments))
        except MCPError as error:
            return {"error": {"code": error.code, "message": error.message}}


async def run(job: dict[str, Any]) -> dict[str, Any]:
    heard = Heard()
    if job["transport"] == "stdio":
        target: Any = StdioTransport(
            command=job["command"], args=job["args"], env=job["env"], cwd=job.get("cwd"), keep_alive=False
        )
    else:
        target = StreamableHttpTransport(job["url"], headers=job.get("headers"))
    async with Client(target, mode=job.get("mode", "auto"), message_handler=heard.note) as client:
        return await heard.done(Asking(client), client.protocol_version, job["steps"])


if __name__ == "__main__":
    main(run)
