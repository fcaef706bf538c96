"""What goes wrong at the provider, at the client, in what they send, in the encoder; and all that is odd but right."""

from __future__ import annotations

import asyncio
import base64
import gzip
import json
import os
import zlib
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any

import brotli
import pytest
from backports import zstd

from model_bodies import FORMATS, asking, function
from model_doors import model_door
from pegboard.events import ModelRequestServed
from pegboard.gateways.llm.proxy import app
from pegboard.stores import MemoryEmbeddings, MemoryEvents
from pegboard.testing import FakeEncoder
from pegboard_bench.ports import free_port
from processes import until
from raw_http import OK, Arrived, answer, connect, exchange, listening, request

JSON = b"content-type: application/json"
PATHS = {
    "openai_chat": "/openai/v1/chat/completions",
    "openai_responses": "/openai/v1/responses",
    "anthropic": "/anthropic/v1/messages",
    "gemini": "/gemini/v1beta/models/some-model:generateContent",
}
CHAT = PATHS["openai_chat"]
JOBS = ("create_issue", "renew_loan", "book_flight", "water_plants")
ASKED = json.dumps(asking("openai_chat", "renew the loan", JOBS)).encode()
ONE = {"profile": "semantic", "k": 1}


def upstreams(address: str, **more: Any) -> dict[str, Any]:
    formats = ("openai", "anthropic", "gemini")
    return {name: {"url": f"http://{address}", "format": name, "retries": 0} | more for name in formats}


@asynccontextmanager
async def door(
    address: str, *, encoder: FakeEncoder | None = None, upstream: dict[str, Any] | None = None, **llm: Any
) -> AsyncIterator[tuple[str, MemoryEvents]]:
    parts = {"encoder": encoder or FakeEncoder(), "embeddings": MemoryEmbeddings()}
    asked = {"policy": ONE} | llm
    async with model_door(upstreams(address, **(upstream or {})), parts=parts, **asked) as (found, _, events):
        yield found, events


@asynccontextmanager
async def before(handle: Callable[[Arrived, asyncio.StreamWriter], Any], **options: Any) -> AsyncIterator[str]:
    """The address of a gateway before a provider that handles requests like this."""
    async with listening(handle) as behind, door(behind, **options) as (address, _):
        yield address


class Provider:
    """Answers every request alike, and keeps what arrived."""

    def __init__(self, said: bytes = answer(b"{}", JSON)) -> None:
        self.said = said
        self.arrived: list[Arrived] = []

    async def __call__(self, arrived: Arrived, writer: asyncio.StreamWriter) -> None:
        self.arrived.append(arrived)
        writer.write(self.said)

    def before(self, **options: Any) -> AbstractAsyncContextManager[str]:
        return before(self, **options)


async def told_of(events: MemoryEvents) -> ModelRequestServed:
    """The event of the one request, which comes when its answer has ended."""
    await until(lambda: bool(events.of(ModelRequestServed)))
    (told,) = events.of(ModelRequestServed)
    assert isinstance(told, ModelRequestServed)
    return told


def names(body: bytes) -> list[str]:
    return [tool["function"]["name"] for tool in json.loads(body)["tools"]]


# What the provider does


@pytest.mark.parametrize("name", FORMATS)
async def test_a_provider_that_is_down_is_a_502_in_the_shape_of_its_format(name: str) -> None:
    async with door(f"127.0.0.1:{free_port()}") as (address, events):
        status, headers, body = await exchange(
            address, request(PATHS[name], json.dumps(asking(name, "x")).encode(), b"authorization: Bearer sk-secret")
        )

        assert status == 502
        assert b"x-pegboard-error: upstream_error" in headers
        error = json.loads(body)["error"]
        assert "cannot be reached" in error["message"]
        assert "sk-secret" not in body.decode()
        assert ("type" in error, "status" in error) == ((False, True) if name == "gemini" else (True, False))
        told = await told_of(events)
        assert (told.status, "sk-secret" in repr(told)) == (502, False)


async def test_a_provider_that_does_not_answer_in_time_is_a_504() -> None:
    async def silent(arrived: Arrived, writer: asyncio.StreamWriter) -> None:
        await arrived.gone()
        writer.close()

    async with before(silent, upstream={"read_timeout": 0.1}) as address:
        status, _, body = await exchange(address, request(CHAT, ASKED))

    assert status == 504
    assert "did not answer in time" in json.loads(body)["error"]["message"]


async def test_a_provider_that_falls_silent_in_a_stream_ends_it() -> None:
    async def halting(arrived: Arrived, writer: asyncio.StreamWriter) -> None:
        writer.write(OK + b"content-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n6\r\ndata: \r\n")
        await arrived.gone()
        writer.close()

    async with before(halting, upstream={"read_timeout": 0.1}) as address:
        status, _, body = await exchange(address, request(CHAT, ASKED))

    assert status == 200
    assert body == b"6\r\ndata: \r\n"


@pytest.mark.requirement("P27")
@pytest.mark.parametrize(
    "line", [b"500 Internal Server Error", b"429 Too Many Requests", b"401 Unauthorized", b"529 Overloaded"]
)
async def test_what_the_provider_says_is_wrong_goes_to_the_client_untouched(line: bytes) -> None:
    said = b'{ "error" : {"message":"\\u00fc slow down"}}'
    provider = Provider(answer(said, JSON, b"retry-after: 7", b"x-request-id: r1", status=b"HTTP/1.1 " + line))
    async with provider.before() as address:
        status, headers, body = await exchange(address, request(CHAT, ASKED))

    assert status == int(line[:3])
    assert body == said
    assert {b"retry-after: 7", b"x-request-id: r1"} <= set(headers)
    assert len(provider.arrived) == 1


async def test_an_answer_that_is_cut_breaks_off_at_the_client_too_and_the_next_request_is_served() -> None:
    async def cutting(arrived: Arrived, writer: asyncio.StreamWriter) -> None:
        if b"renew" in arrived.body:
            writer.write(OK + b"content-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n8\r\ndata: {}\r\n")
            await writer.drain()
            writer.close()
        else:
            writer.write(answer(b"{}", JSON))

    async with before(cutting) as address:
        status, _, body = await exchange(address, request(CHAT, ASKED))
        assert (status, body) == (200, b"8\r\ndata: {}\r\n")
        assert (await exchange(address, request(CHAT, b"{}")))[0] == 200


async def test_an_answer_that_is_no_http_is_a_502() -> None:
    async def babbling(arrived: Arrived, writer: asyncio.StreamWriter) -> None:
        writer.write(b"what?\r\n\r\n")
        writer.close()

    async with before(babbling) as address:
        status, _, body = await exchange(address, request(CHAT, ASKED))

    assert status == 502
    assert "cannot be reached" in json.loads(body)["error"]["message"]


async def test_a_request_on_a_connection_that_the_provider_had_closed_is_sent_again() -> None:
    arrived: list[bytes] = []

    async def closing(request: Arrived, writer: asyncio.StreamWriter) -> None:
        """Answers, and then closes without a word once the next request is on its way."""
        arrived.append(request.body)
        writer.write(answer(b"{}", JSON))
        await writer.drain()
        await request.reader.read(1)
        writer.transport.abort()

    async with before(closing) as address:
        for _ in range(4):
            assert (await exchange(address, request(CHAT, ASKED)))[0] == 200
    assert len(arrived) == 4


async def test_a_request_that_may_have_been_served_is_not_sent_again() -> None:
    arrived: list[bytes] = []

    async def crashing(request: Arrived, writer: asyncio.StreamWriter) -> None:
        arrived.append(request.body)
        writer.transport.abort()

    async with before(crashing, upstream={"retries": 3}) as address:
        assert (await exchange(address, request(CHAT, ASKED)))[0] == 502
    assert len(arrived) == 1


async def test_redirects_are_the_clients_to_follow() -> None:
    provider = Provider(answer(b"", b"location: http://elsewhere/x", status=b"HTTP/1.1 307 Temporary Redirect"))
    async with provider.before() as address:
        status, headers, _ = await exchange(address, request(CHAT, ASKED))

    assert status == 307
    assert b"location: http://elsewhere/x" in headers
    assert len(provider.arrived) == 1


@pytest.mark.requirement("P27")
async def test_a_stream_passes_piece_by_piece_and_byte_by_byte() -> None:
    pieces = [b'data: {"a"', b": 1}\r\n", b"\r", b"\n: ping\n\n", b"event: x\ndata: \xf0\x9f", b"\xa4\x96\n\n"]
    heard = asyncio.Queue[None]()

    async def streaming(arrived: Arrived, writer: asyncio.StreamWriter) -> None:
        writer.write(OK + b"content-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n")
        for piece in pieces:
            writer.write(b"%x\r\n%s\r\n" % (len(piece), piece))
            await writer.drain()
            await heard.get()
        writer.write(b"0\r\n\r\n")

    async with before(streaming) as address:
        reader, writer = await connect(address)
        writer.write(request(CHAT, ASKED))
        await reader.readuntil(b"\r\n\r\n")
        for piece in pieces:
            size = int(await reader.readline(), 16)
            assert await reader.readexactly(size + 2) == piece + b"\r\n"
            heard.put_nowait(None)
        assert await reader.read() == b"0\r\n\r\n"
        writer.close()


# What the client does


@pytest.mark.parametrize("begun", [False, True])
async def test_a_client_that_hangs_up_ends_the_request_at_the_provider(begun: bool) -> None:
    waiting, gone = asyncio.Event(), asyncio.Event()

    async def endless(arrived: Arrived, writer: asyncio.StreamWriter) -> None:
        if begun:
            writer.write(OK + b"content-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n6\r\ndata: \r\n")
            await writer.drain()
        waiting.set()
        await arrived.gone()
        gone.set()
        writer.close()

    async with before(endless) as address, asyncio.timeout(60):
        reader, writer = await connect(address)
        writer.write(request(CHAT, ASKED))
        await waiting.wait()
        if begun:
            await reader.readuntil(b"data: ")
        writer.close()
        await gone.wait()


async def test_a_client_that_hangs_up_in_its_own_body_leaves_nothing_behind() -> None:
    provider = Provider()
    async with listening(provider) as behind, door(behind) as (address, events):
        for target in (CHAT, "/openai/v1/files"):
            _, writer = await connect(address)
            writer.write(request(target, ASKED)[:-10])
            await writer.drain()
            writer.close()
        await until(lambda: len(events.of(ModelRequestServed)) == 2)
        assert (await exchange(address, request(CHAT, ASKED)))[0] == 200
    assert len(provider.arrived) == 1


async def test_a_client_that_hangs_up_while_tools_are_selected_is_not_billed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(app, "LONG_MS", 0.0)
    encoder, provider = SlowEncoder(), Provider()
    async with listening(provider) as behind, door(behind, encoder=encoder) as (address, events):
        _, writer = await connect(address)
        writer.write(request(CHAT, ASKED))
        await encoder.asked.wait()
        writer.close()
        assert (await exchange(address, request("/openai/v1/models", method="GET")))[0] == 200
        encoder.let.set()
        await until(lambda: len(events.of(ModelRequestServed)) == 2)

    assert [each.head.split()[0] for each in provider.arrived] == [b"GET"]


async def test_a_client_that_waits_for_leave_to_send_its_body_is_given_it() -> None:
    provider = Provider()
    async with provider.before() as address, asyncio.timeout(60):
        for target in (CHAT, "/openai/v1/files"):
            reader, writer = await connect(address)
            head, _, body = request(target, ASKED, b"expect: 100-continue").partition(b"\r\n\r\n")
            writer.write(head + b"\r\n\r\n")
            assert await reader.readuntil(b"\r\n\r\n") == b"HTTP/1.1 100 Continue\r\n\r\n"
            writer.write(body)
            assert (await reader.read()).startswith(b"HTTP/1.1 200")
            writer.close()
    assert len(provider.arrived) == 2
    assert not any(b"expect" in arrived.head.lower() for arrived in provider.arrived)


@pytest.mark.parametrize("method", ["GET", "HEAD", "DELETE", "OPTIONS", "PATCH", "PUT"])
async def test_any_method_and_path_passes_with_its_escapes_and_query(method: str) -> None:
    target = "/v1/files/a%2Fb%20c/d;x=1?q=a+b%20c&empty=&q=%C3%BC&flag"
    said = answer(b"", b"x-count: 1") if method == "HEAD" else answer(b"some", b"x-count: 1")
    provider = Provider(said)
    async with provider.before() as address:
        status, headers, body = await exchange(address, request(f"/openai{target}", method=method))

    assert provider.arrived[0].lines[0] == f"{method} {target} HTTP/1.1".encode()
    assert (status, body) == (200, b"" if method == "HEAD" else b"some")
    assert b"x-count: 1" in headers
    assert not any(line.startswith(b"x-pegboard") for line in headers)


async def test_a_multipart_upload_passes_byte_for_byte() -> None:
    body = b"--b\r\ncontent-disposition: form-data; name=f\r\n\r\n\x00\xff\r\n--b--\r\n" * 5000
    provider = Provider()
    async with provider.before() as address:
        kind = b"content-type: multipart/form-data; boundary=b"
        assert (await exchange(address, request("/openai/v1/files", body, kind)))[0] == 200

    (arrived,) = provider.arrived
    assert arrived.body == body
    assert kind in arrived.lines
    assert b"content-length: %d" % len(body) in arrived.head.lower().split(b"\r\n")


async def test_a_body_in_chunks_passes_and_is_filtered() -> None:
    chunked = b"%x\r\n%s\r\n%x\r\n%s\r\n0\r\n\r\n" % (50, ASKED[:50], len(ASKED) - 50, ASKED[50:])
    provider = Provider()
    async with provider.before() as address:
        for target in (CHAT, "/openai/v1/other"):
            await exchange(address, request(target, b"", b"transfer-encoding: chunked") + chunked)

    filtered, passed = provider.arrived
    assert names(filtered.body) == ["renew_loan"]
    assert passed.body == ASKED


async def test_headers_pass_as_they_are_twice_if_they_are_there_twice() -> None:
    odd = [b"x-twice: 1", b"x-twice: 2", "x-name: Zoë".encode(), b"X-Empty:", b"openai-organization: o"]
    provider = Provider(answer(b"{}", JSON, b"set-cookie: a=1", b"set-cookie: b=2", "x-back: Zoë".encode()))
    async with provider.before() as address:
        _, headers, _ = await exchange(address, request(CHAT, ASKED, *odd, b"connection: x-private", b"x-private: 1"))

    lines = [line.lower().replace(b": ", b":") for line in provider.arrived[0].lines]
    assert [line for line in lines if line.startswith(b"x-twice")] == [b"x-twice:1", b"x-twice:2"]
    assert {"x-name:zoë".encode(), b"x-empty:", b"openai-organization:o"} <= set(lines)
    assert not any(line.startswith((b"x-private", b"user-agent", b"accept", b"x-pegboard")) for line in lines)
    assert {b"set-cookie: a=1", b"set-cookie: b=2", "x-back: Zoë".encode()} <= set(headers)


async def test_a_websocket_is_refused_clearly() -> None:
    upgrade = [b"upgrade: websocket", b"sec-websocket-key: AAAAAAAAAAAAAAAAAAAAAA==", b"sec-websocket-version: 13"]
    sent = request("/openai/v1/responses", b"", *upgrade, method="GET").replace(
        b"connection: close", b"connection: upgrade, close"
    )
    async with Provider().before() as address:
        status, _, body = await exchange(address, sent)

    assert status == 501
    assert b"WebSockets are not supported" in body


@pytest.mark.parametrize(
    "target", ["@127.0.0.1:1/v1/models", "*", "//127.0.0.1:1/v1/models", "http://127.0.0.1:1/v1/models"]
)
async def test_no_request_target_leads_anywhere_but_to_the_provider(target: str) -> None:
    provider = Provider()
    async with provider.before() as address:
        status, _, body = await exchange(address, request(target, method="GET"))

    assert status in (200, 400, 404)
    assert b"127.0.0.1:1" not in body or status == 404
    assert (status == 200) == (len(provider.arrived) == 1)


# What is sent


def in_zstd(body: bytes) -> bytes:
    """Without its size in the head, as a stream is compressed."""
    plain = zstd.ZstdCompressor(options={zstd.CompressionParameter.content_size_flag: False})
    return plain.compress(body, zstd.ZstdCompressor.FLUSH_FRAME)


COMPRESSED: dict[str, Callable[[bytes], bytes]] = {
    "gzip": gzip.compress,
    "x-gzip": gzip.compress,
    "deflate": zlib.compress,
    "identity": bytes,
    "zstd": in_zstd,
    "br": brotli.compress,
}


@pytest.mark.requirement("A11")
@pytest.mark.parametrize("coding", COMPRESSED)
async def test_a_compressed_body_is_filtered_and_leaves_as_text(coding: str) -> None:
    provider = Provider()
    async with provider.before() as address:
        sent = request(CHAT, COMPRESSED[coding](ASKED), b"content-encoding: " + coding.encode())
        assert (await exchange(address, sent))[0] == 200

    (arrived,) = provider.arrived
    assert names(arrived.body) == ["renew_loan"]
    assert b"content-encoding" not in arrived.head.lower()


UNREADABLE: dict[str, tuple[bytes, bytes]] = {
    "an unknown coding": (b"content-encoding: compress", b"\x1b\x00\x00"),
    "no zstd": (b"content-encoding: zstd", ASKED),
    "half a zstd": (b"content-encoding: zstd", zstd.compress(ASKED)[:-20]),
    "a bomb of zstd": (b"content-encoding: zstd", zstd.compress(bytes(256 * 1024 * 1024))),
    "no br": (b"content-encoding: br", ASKED),
    "half a br": (b"content-encoding: br", brotli.compress(ASKED)[:-20]),
    "a bomb of br": (b"content-encoding: br", brotli.compress(bytes(256 * 1024 * 1024), quality=1)),
    "two codings": (b"content-encoding: gzip, br", b"\x1b\x00\x00"),
    "no gzip": (b"content-encoding: gzip", ASKED),
    "half a gzip": (b"content-encoding: gzip", gzip.compress(ASKED)[:-20]),
    "a gzip and more": (b"content-encoding: gzip", gzip.compress(b"{}") + gzip.compress(ASKED)),
    "a bomb": (b"content-encoding: gzip", gzip.compress(bytes(64 * 1024 * 1024))),
    "deep nesting": (JSON, b'{"tools":' + b"[" * 200_000 + b"]" * 200_000 + b"}"),
    "deep objects": (JSON, b'{"messages":' + b'{"a":' * 100_000 + b"1" + b"}" * 100_000 + b"}"),
    "invalid UTF-8": (JSON, ASKED.replace(b"create_issue", b"create_\xff\xfe")),
    "no JSON": (JSON, b"tools=[]"),
    "half a JSON": (JSON, ASKED[:-30]),
    "a list": (JSON, b"[]"),
    "null": (JSON, b"null"),
    "UTF-16": (JSON, ASKED.decode().encode("utf-16")),
    "a byte order mark": (JSON, b"\xef\xbb\xbf" + ASKED),
    "a name that is a number": (JSON, ASKED.replace(b'"create_issue"', b"1")),
    "tools that are an object": (JSON, b'{"messages": [], "tools": {"a": 1}}'),
    "NaN": (JSON, ASKED[:-1] + b', "temperature": NaN}'),
    "a key twice": (JSON, ASKED[:-1] + b', "tools": []}'),
}


@pytest.mark.requirement("A11")
async def test_a_body_that_is_large_for_its_images_alone_is_filtered() -> None:
    image = base64.b64encode(os.urandom(256 * 1024)) * 60
    url = {"type": "image_url", "image_url": {"url": "IMAGE"}}
    parts = [{"type": "text", "text": "Renew my loan of the book"}, url]
    said = json.loads(ASKED) | {"messages": [{"role": "user", "content": parts}]}
    body = json.dumps(said).encode().replace(b"IMAGE", b"data:image/png;base64," + image)
    assert len(body) > 16 * 1024 * 1024

    provider = Provider()
    async with provider.before() as address:
        assert (await exchange(address, request(CHAT, body)))[0] == 200

    (arrived,) = provider.arrived
    assert names(arrived.body) == ["renew_loan"]
    assert image in arrived.body


@pytest.mark.requirement("A11")
@pytest.mark.parametrize("case", UNREADABLE)
async def test_a_body_that_cannot_be_read_reaches_the_provider_as_it_came(case: str) -> None:
    header, body = UNREADABLE[case]
    provider = Provider()
    async with listening(provider) as behind, door(behind) as (address, events):
        status, headers, _ = await exchange(address, request(CHAT, body, header))
        told = await told_of(events)

    assert status == 200
    assert provider.arrived[0].body == body
    assert header in provider.arrived[0].lines
    assert b"x-pegboard-filter: failed" in headers
    assert any(line.startswith(b"x-pegboard-reason: ") for line in headers)
    assert (told.outcome, bool(told.reason)) == ("failed", True)


@pytest.mark.parametrize("target", [CHAT, "/openai/v1/files"])
async def test_a_body_of_50_mb_passes_and_one_beyond_the_limit_is_refused(target: str) -> None:
    large = b'{"messages": [], "input": "' + b"x" * (50 * 1024 * 1024) + b'"}'
    provider = Provider()
    async with provider.before(most_body=60 * 1024 * 1024) as address:
        status, _, _ = await exchange(address, request(target, large))
        assert status == 200
        assert provider.arrived[0].body == large

    async with provider.before(most_body=1024) as address:
        body = bytes(4096)
        status, _, said = await exchange(address, request(target, body))
        assert status == 413
        assert "most_body" in json.loads(said)["error"]["message"]
        chunked = request(target, b"", b"transfer-encoding: chunked") + b"1000\r\n" + body + b"\r\n0\r\n\r\n"
        assert (await exchange(address, chunked))[0] == 413


async def test_ten_thousand_tools_are_filtered_where_so_many_are_allowed() -> None:
    tools = [function(f"tool_{number}", description=f"Does thing {number}.") for number in range(10_000)]
    body = json.dumps(asking("openai_chat", "renew the loan") | {"tools": [*tools, function("renew_loan")]}).encode()
    provider = Provider()
    async with provider.before(filter_timeout=60, patience=60, most_tools=20_000) as address:
        assert (await exchange(address, request(CHAT, body)))[0] == 200
    assert names(provider.arrived[0].body) == ["renew_loan"]


# What fails here


async def test_without_the_encoder_requests_pass_and_say_so() -> None:
    provider = Provider()
    async with listening(provider) as behind, door(behind, encoder=FakeEncoder(broken=True)) as (address, events):
        status, headers, _ = await exchange(address, request(CHAT, ASKED))
        told = await told_of(events)

    assert status == 200
    assert provider.arrived[0].body == ASKED
    assert b"x-pegboard-filter: failed" in headers
    assert b"x-pegboard-tools: 4/4" in headers
    assert any(b"encoder" in line for line in headers if line.startswith(b"x-pegboard-reason"))
    assert (told.outcome, told.kept, told.tools) == ("failed", 4, 4)


@pytest.mark.parametrize("name", FORMATS)
async def test_without_the_encoder_requests_are_refused_where_that_is_the_policy(name: str) -> None:
    provider = Provider()
    body = json.dumps(asking(name, "renew the loan", JOBS)).encode()
    policy = ONE | {"fail": "closed"}
    async with listening(provider) as behind, door(behind, encoder=FakeEncoder(broken=True), policy=policy) as opened:
        status, headers, said = await exchange(opened[0], request(PATHS[name], body))

    assert status == 503
    assert provider.arrived == []
    error = json.loads(said)["error"]
    assert "could not be selected" in error["message"]
    assert error.get("status") == ("UNAVAILABLE" if name == "gemini" else None)
    assert b"x-pegboard-error: filter_failed" in headers


async def test_an_encoder_that_fails_later_leaves_words_to_pick_and_the_answer_says_so() -> None:
    encoder, provider = FakeEncoder(), Provider()
    async with provider.before(encoder=encoder, policy={"profile": "hybrid", "k": 1}) as address:
        await exchange(address, request(CHAT, ASKED))
        encoder.broken = True
        _, headers, _ = await exchange(address, request(CHAT, ASKED.replace(b"the loan", b"my loan")))
        encoder.broken = False
        _, again, _ = await exchange(address, request(CHAT, ASKED.replace(b"the loan", b"my loan")))

    assert b"x-pegboard-filter: filtered" in headers
    assert b"x-pegboard-reason: selected by words alone: no encoder answered" in headers
    assert not any(line.startswith(b"x-pegboard-reason") for line in again)


@pytest.mark.parametrize("fail", ["open", "closed"])
async def test_where_nothing_but_meaning_picks_a_failing_encoder_is_a_failure(fail: str) -> None:
    encoder, provider = FakeEncoder(), Provider()
    async with provider.before(encoder=encoder, policy={"profile": "semantic", "fail": fail}) as address:
        await exchange(address, request(CHAT, ASKED))
        encoder.broken = True
        status, headers, _ = await exchange(address, request(CHAT, ASKED.replace(b"the loan", b"my loan")))

    assert (status, len(provider.arrived)) == ((200, 2) if fail == "open" else (503, 1))
    assert (b"x-pegboard-filter: failed" in headers) == (fail == "open")


class SlowEncoder(FakeEncoder):
    """Answers when it is let."""

    def __init__(self) -> None:
        super().__init__()
        self.asked, self.let = asyncio.Event(), asyncio.Event()

    async def encode(self, texts: Any) -> Any:
        self.asked.set()
        await self.let.wait()
        return await super().encode(texts)


async def test_requests_do_not_wait_long_for_a_slow_encoder_and_are_filtered_once_it_is_done() -> None:
    encoder, provider = SlowEncoder(), Provider()
    async with provider.before(encoder=encoder, patience=0.05, filter_timeout=0.1) as address:
        _, headers, _ = await exchange(address, request(CHAT, ASKED))
        assert b"x-pegboard-filter: failed" in headers
        assert provider.arrived[0].body == ASKED
        encoder.let.set()

        async def filtered() -> bool:
            await exchange(address, request(CHAT, ASKED))
            return names(provider.arrived[-1].body) == ["renew_loan"]

        async with asyncio.timeout(60):
            while not await filtered():
                pass
