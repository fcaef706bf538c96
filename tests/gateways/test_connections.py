"""Nobody who opens connections, or sends slowly or without end, keeps others out or takes memory."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import httpx2
import pytest

from model_bodies import asking
from model_upstream import ModelUpstream
from served import Gateway, OpenGateway

pytestmark = pytest.mark.slow

HALF = b"POST /v1/chat/completions HTTP/1.1\r\nHost: localhost\r\n"
CHAT = "/v1/chat/completions"
PATIENCE = 60


@asynccontextmanager
async def connection(
    gateway: Gateway, *sent: bytes
) -> AsyncIterator[tuple[asyncio.StreamReader, asyncio.StreamWriter]]:
    address = httpx2.URL(gateway.server.url)
    reader, writer = await asyncio.open_connection(address.host, address.port)
    try:
        for data in sent:
            writer.write(data)
            await writer.drain()
        yield reader, writer
    finally:
        writer.close()


async def said(reader: asyncio.StreamReader) -> bytes:
    """The first line of what comes before the connection is closed; nothing where it is just closed."""
    async with asyncio.timeout(PATIENCE):
        try:
            return (await reader.read()).partition(b"\r\n")[0]
        except ConnectionError:
            return b""


@pytest.mark.requirement("D10")
async def test_half_open_connections_leave_for_new_ones(gateway_of: OpenGateway) -> None:
    async with gateway_of(most_connections=20) as gateway:
        opened = [connection(gateway, HALF) for _ in range(50)]
        readers = [(await each.__aenter__())[0] for each in opened]
        health = await gateway.http.get("/healthz")
        first = await said(readers[0])
        for each in opened:
            await each.__aexit__(None, None, None)

    assert health.status_code == 200
    assert first == b""


@pytest.mark.requirement("D10")
async def test_a_connection_whose_request_is_under_way_is_not_closed_for_a_new_one(
    gateway_of: OpenGateway, upstream: ModelUpstream
) -> None:
    upstream.mood = "stream"
    async with gateway_of(most_connections=4) as gateway:
        answering = asyncio.create_task(gateway.http.post(CHAT, json=asking("openai_chat")))
        await upstream.begun.wait()
        for _ in range(8):
            async with connection(gateway, HALF):
                pass
        upstream.release.set()
        answer = await answering

    assert answer.text.endswith("[DONE]\n\n")


@pytest.mark.requirement("D10")
@pytest.mark.parametrize("sent", [b"", b"GET", HALF])
async def test_the_head_of_a_request_has_its_time(gateway_of: OpenGateway, sent: bytes) -> None:
    async with gateway_of(head_timeout=0.2) as gateway, connection(gateway, sent) as (reader, _):
        assert b"408" in await said(reader)


@pytest.mark.requirement("D10")
async def test_the_head_of_a_second_request_has_its_time_too(gateway_of: OpenGateway) -> None:
    whole = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n"
    async with gateway_of(head_timeout=3.0) as gateway, connection(gateway, whole) as (reader, writer):
        head = await reader.readuntil(b"\r\n\r\n")
        length = next(line for line in head.split(b"\r\n") if line.lower().startswith(b"content-length"))
        await reader.readexactly(int(length.partition(b":")[2]))
        writer.write(HALF)
        assert b"408" in await said(reader)


async def test_a_connection_that_was_idle_longer_than_clients_keep_theirs_is_still_open(
    gateway_of: OpenGateway,
) -> None:
    """Five seconds are what httpx keeps one, and so the SDKs of providers; a close at that moment loses a request."""
    whole = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n"
    async with gateway_of() as gateway, connection(gateway, whole) as (reader, writer):
        await reader.readuntil(b"\r\n\r\n")
        await asyncio.sleep(6)
        assert not reader.at_eof()
        writer.write(whole.replace(b"localhost\r\n", b"localhost\r\nConnection: close\r\n"))
        rest = await asyncio.wait_for(reader.read(), PATIENCE)

    assert b"HTTP/1.1 200" in rest


@pytest.mark.requirement("D10")
async def test_a_head_without_end_is_refused(gateway_of: OpenGateway) -> None:
    async with gateway_of() as gateway, connection(gateway, HALF) as (reader, writer):
        reading = asyncio.create_task(said(reader))
        while not reading.done():
            try:
                writer.write(b"x-more: " + b"y" * 8192 + b"\r\n")
                await writer.drain()
            except ConnectionError:
                break
        assert await reading in (b"HTTP/1.1 431 Request Header Fields Too Large", b"")


@pytest.mark.requirement("D10")
@pytest.mark.parametrize("path", [b"/v1/chat/completions", b"/v1/files", b"/mcp"])
async def test_a_body_has_its_time(gateway_of: OpenGateway, path: bytes) -> None:
    head = (
        b"POST "
        + path
        + b" HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\nContent-Length: 9\r\n\r\n{"
    )
    async with gateway_of(body_timeout=0.3) as gateway, connection(gateway, head) as (reader, _):
        assert b"408" in await said(reader)


@pytest.mark.requirement("D10")
async def test_a_body_that_is_too_large_to_be_read_passes_as_it_comes(
    gateway_of: OpenGateway, upstream: ModelUpstream
) -> None:
    body = json.dumps(asking("openai_chat") | {"user": "x" * 3_000_000}).encode()
    async with gateway_of(llm={"most_filtered": 100_000}) as gateway:
        answer = await gateway.http.post(CHAT, content=body, headers={"content-type": "application/json"})

    assert answer.status_code == 200, answer.text
    assert "more than 100,000 bytes" in answer.headers["x-pegboard-reason"]
    assert upstream.sent[0].body == body
