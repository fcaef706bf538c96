"""An MCP server whose answers are compressed, and a fleet before it."""

from __future__ import annotations

import gzip
import json
import zlib
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from aiohttp import web as server

from pegboard.clock import SystemClock
from pegboard.model import ToolId
from pegboard.settings.server_spec import ServerSpec
from pegboard.stores import MemoryEvents
from pegboard.upstreams import Fleet, UpstreamLimits

LIMIT = 1_000_000
BOMB = 256 * 1024 * 1024
"""Bytes that an answer of a quarter of a megabyte stands for."""
BOOM = ToolId("bomber", "boom")
TOOLS = [{"name": "boom", "inputSchema": {"type": "object"}}]


def bomb(opening: bytes, closing: bytes) -> bytes:
    packer = zlib.compressobj(9, wbits=31)
    parts = [packer.compress(opening)]
    parts += [packer.compress(b"x" * 2**20) for _ in range(BOMB // 2**20)]
    return b"".join([*parts, packer.compress(closing), packer.flush()])


class Compressor:
    """An MCP server of the handshake era whose answers are compressed. ``coding`` is what it says of them."""

    def __init__(self, kind: str, coding: str = "gzip") -> None:
        self.kind, self.coding, self.explodes = kind, coding, True

    def body(self, message: dict[str, Any]) -> bytes:
        said = {"jsonrpc": "2.0", "id": message["id"]}
        match message["method"]:
            case "initialize":
                info = {"name": "bomber", "version": "1"}
                result: dict[str, Any] = {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}}}
                result |= {"serverInfo": info}
            case "tools/list":
                result = {"tools": TOOLS}
            case "tools/call" if self.explodes:
                opening = json.dumps(said)[:-1] + ',"result":{"content":[{"type":"text","text":"'
                return bomb(self.framed(opening.encode()), b'"}]}}\n\n')
            case "tools/call":
                result = {"content": [{"type": "text", "text": "calm"}]}
            case _:
                result = {}
        text = self.framed(json.dumps(said | {"result": result}).encode()) + b"\n\n"
        for coding in self.coding.split(","):
            text = gzip.compress(text) if coding.strip() in ("gzip", "br") else zlib.compress(text)
        return text

    def framed(self, text: bytes) -> bytes:
        return b"data: " + text if self.kind == "text/event-stream" else text

    async def answer(self, request: server.Request) -> server.Response:
        if request.method != "POST":
            return server.Response(status=405)
        message = await request.json()
        if "id" not in message:
            return server.Response(status=202)
        coding = {"content-encoding": self.coding}
        return server.Response(body=self.body(message), headers=coding | {"content-type": self.kind})


@asynccontextmanager
async def served(compressor: Compressor) -> AsyncIterator[ServerSpec]:
    application = server.Application()
    application.router.add_route("*", "/mcp", compressor.answer)
    runner = server.AppRunner(application, shutdown_timeout=0, access_log=None)
    await runner.setup()
    site = server.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    try:
        port = runner.addresses[0][1]
        yield ServerSpec(name="bomber", url=f"http://127.0.0.1:{port}/mcp")
    finally:
        await runner.cleanup()


@asynccontextmanager
async def fleet_before(
    compressor: Compressor,
    limits: UpstreamLimits = UpstreamLimits(result=LIMIT),  # noqa: B008
) -> AsyncIterator[Fleet]:
    options = {"connect_timeout": 30.0, "call_timeout": 60.0, "limits": limits}
    async with (
        served(compressor) as spec,
        Fleet({"bomber": spec}, clock=SystemClock(), events=MemoryEvents(), **options) as fleet,  # type: ignore[arg-type]
    ):
        await fleet.settled(30)
        yield fleet
