"""The HTTP client to one server, as far as no server is needed to show it: tests/gateways/mcp/faults has the rest."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Iterable
from typing import Any

import httpx2
import pytest

from pegboard.upstreams import UpstreamLimits, http_transport
from pegboard.upstreams.http_transport import SIGN_IN, ServerClient, _Events, _Whole

ANSWER = b'{"jsonrpc":"2.0","id":7,"result":{}}'
OTHERS = b'{"jsonrpc":"2.0","id":8,"result":{}}'
NEWS = b'{"jsonrpc":"2.0","method":"notifications/progress","params":{"id":8}}'


class Chunks(httpx2.AsyncByteStream):
    def __init__(self, chunks: Iterable[bytes]) -> None:
        self.chunks = list(chunks)

    async def __aiter__(self) -> AsyncIterator[bytes]:
        for chunk in self.chunks:
            yield chunk

    async def aclose(self) -> None:
        """Nothing is open."""


async def read(kind: Any, data: bytes, size: int, limit: int = 1000) -> bytes:
    body = kind(Chunks(data[at : at + size] for at in range(0, len(data), size)), 7, limit)
    return b"".join([chunk async for chunk in body])


async def test_news_may_be_silent_for_days_and_no_call_waits_for_a_free_connection() -> None:
    async with ServerClient({}, UpstreamLimits(result=1000)) as client:
        assert client.timeout.read is None
        assert client.timeout.connect is not None
        assert client._transport._pool._max_connections > 10**6  # type: ignore[attr-defined]


@pytest.mark.requirement("M16")
async def test_no_connection_is_used_after_a_pause_in_which_servers_close_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """uvicorn and Node close an unused connection after 5 s: a request that is sent just then has no answer."""
    assert http_transport.IDLE_SECONDS <= 4
    monkeypatch.setattr(http_transport, "IDLE_SECONDS", 2.0)
    opened = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        opened.append(writer)
        while await reader.readline():
            while (await reader.readline()).strip():
                pass
            writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n{}")

    async with (
        await asyncio.start_server(serve, "127.0.0.1", 0) as server,
        ServerClient({}, UpstreamLimits(result=1000)) as client,
    ):
        url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/"
        for pause in (0, 0, 3.0):
            await asyncio.sleep(pause)
            assert (await client.get(url)).text == "{}"
        for writer in opened:
            writer.close()
    assert len(opened) == 2


@pytest.mark.parametrize("size", [1, 7, 1000])
async def test_an_answer_to_this_request_passes_byte_for_byte(size: int) -> None:
    assert await read(_Whole, ANSWER, size) == ANSWER
    stream = b"event: message\r\ndata: " + NEWS + b"\r\n\r\n: still here\r\n\r\ndata: " + ANSWER + b"\r\n\r\n"
    assert await read(_Events, stream, size) == stream


@pytest.mark.parametrize("size", [1, 7, 1000])
async def test_an_answer_to_another_request_does_not_pass(size: int) -> None:
    with pytest.raises(httpx2.StreamError, match="answers another request"):
        await read(_Whole, OTHERS, size)
    stream = b"data: " + OTHERS + b"\n\ndata: " + ANSWER + b"\n\n"
    assert await read(_Events, stream, size) == b"\ndata: " + ANSWER + b"\n\n"


@pytest.mark.parametrize("kind", [_Whole, _Events])
async def test_nothing_passes_beyond_the_limit(kind: Any) -> None:
    text = b"data: " + b"x" * 2000 + b"\n\n"
    with pytest.raises((httpx2.StreamError, httpx2.SSEError), match="allowed 1,000 bytes"):
        await read(kind, text, 100)


@pytest.mark.requirement("023.waiting")
@pytest.mark.parametrize("handshake", [200, 400, 401, 404, 500])
async def test_a_server_that_asks_for_a_sign_in_and_then_refuses_the_handshake_waits_for_the_sign_in(
    handshake: int,
) -> None:
    def answer(request: httpx2.Request) -> httpx2.Response:
        method = json.loads(request.content)["method"]
        status = {"server/discover": 401, "initialize": handshake}.get(method, 404)
        return httpx2.Response(status, json={"said": method})

    async with ServerClient({}, UpstreamLimits(result=1000)) as client:
        client._transport = httpx2.MockTransport(answer)

        async def said(method: str) -> str:
            request = {"jsonrpc": "2.0", "id": 1, "method": method}
            return (await client.post("https://a.example/mcp", json=request)).text

        assert SIGN_IN not in await said("initialize") or handshake == 401
        assert SIGN_IN in await said("server/discover")
        assert (SIGN_IN in await said("initialize")) == (400 <= handshake < 500)
        assert SIGN_IN not in await said("tools/list")


@pytest.mark.parametrize(("status", "method"), [(404, "POST"), (307, "POST"), (500, "GET"), (200, "DELETE")])
async def test_events_that_are_no_answer_are_read_up_to_the_limit(status: int, method: str) -> None:
    taken = 0

    class Endless(Chunks):
        async def __aiter__(self) -> AsyncIterator[bytes]:
            nonlocal taken
            for chunk in self.chunks:
                taken += len(chunk)
                yield chunk

    def answer(_request: httpx2.Request) -> httpx2.Response:
        head = {"content-type": "text/event-stream", "location": "https://a.example/other"}
        return httpx2.Response(status, headers=head, stream=Endless([b"data: x\n\n" * 10] * 1000))

    async with ServerClient({}, UpstreamLimits(result=1000, list_bytes=1000)) as client:
        client._transport = httpx2.MockTransport(answer)
        message = {"jsonrpc": "2.0", "id": 1, "method": "tools/call"} if method == "POST" else None
        headers = {"mcp-session-id": "s"}
        response = await client.request(method, "https://a.example/mcp", json=message, headers=headers)
    assert len(response.content) <= 1001
    assert taken < 2000


@pytest.mark.parametrize("said", [b"", b"HTTP/1.1 200 OK\r\n", b"HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\n"])
async def test_a_server_that_does_not_say_that_the_session_has_ended_is_not_waited_for(
    monkeypatch: pytest.MonkeyPatch, said: bytes
) -> None:
    monkeypatch.setattr(http_transport, "END_SECONDS", 0.3)

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(said)
        await reader.read()
        writer.close()

    async with (
        await asyncio.start_server(serve, "127.0.0.1", 0) as server,
        ServerClient({}, UpstreamLimits(result=1000)) as client,
    ):
        url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/"
        ending = asyncio.create_task(client.delete(url))
        done, _ = await asyncio.wait([ending], timeout=20)
        ending.cancel()
        assert done
        assert isinstance(ending.exception(), TimeoutError)
