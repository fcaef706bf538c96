"""Limits on answers of MCP servers hold for what they are once their content coding is undone."""

from __future__ import annotations

import gzip
import json
import tracemalloc
import zlib
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from aiohttp import web as server

from pegboard.clock import SystemClock
from pegboard.errors import PegboardError
from pegboard.inflate import PIECE, Inflater
from pegboard.model import ToolId
from pegboard.server_spec import ServerSpec
from pegboard.stores import MemoryEvents
from pegboard.upstreams import Fleet, Limits

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
                result = {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}}, "serverInfo": info}
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
async def fleet_before(compressor: Compressor) -> AsyncIterator[Fleet]:
    options = {"connect_timeout": 30.0, "call_timeout": 60.0, "limits": Limits(result=LIMIT)}
    async with (
        served(compressor) as spec,
        Fleet({"bomber": spec}, clock=SystemClock(), events=MemoryEvents(), **options) as fleet,  # type: ignore[arg-type]
    ):
        await fleet.settled(30)
        yield fleet


async def said(fleet: Fleet) -> str:
    try:
        return str(await fleet.call(BOOM, {}))
    except PegboardError as error:
        return f"{error.message} {error.remedy}"


@pytest.mark.requirement("D6")
@pytest.mark.parametrize("kind", ["application/json", "text/event-stream"])
async def test_an_answer_that_inflates_beyond_the_limit_is_an_error_and_takes_no_memory(kind: str) -> None:
    compressor = Compressor(kind)
    async with fleet_before(compressor) as fleet:
        tracemalloc.start()
        try:
            outcome = await said(fleet)
            peak = tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()
        compressor.explodes = False
        again = await said(fleet)

    assert "result_limit" in outcome
    assert peak < 20 * LIMIT
    assert "calm" in again


@pytest.mark.requirement("D6")
@pytest.mark.parametrize("coding", ["gzip", "deflate", "deflate, gzip"])
async def test_answers_in_any_coding_that_was_asked_for_are_read(coding: str) -> None:
    compressor = Compressor("application/json", coding)
    compressor.explodes = False
    async with fleet_before(compressor) as fleet:
        assert "calm" in await said(fleet)


@pytest.mark.requirement("D6")
async def test_an_answer_in_a_coding_that_nobody_asked_for_is_not_undone() -> None:
    async with fleet_before(Compressor("application/json", "br")) as fleet:
        assert [status.state for status in fleet.status()] != ["ready"]


@pytest.mark.requirement("D6")
@pytest.mark.parametrize("size", [1, 1000, 10**6])
def test_a_compressed_body_is_undone_in_small_pieces_however_it_comes(size: int) -> None:
    plain = bytes(range(256)) * 4096
    packed = gzip.compress(plain)
    inflater = Inflater("gzip")
    pieces = [each for at in range(0, len(packed), size) for each in inflater.pieces(packed[at : at + size])]

    assert b"".join(pieces) == plain
    assert max(map(len, pieces)) <= PIECE
