"""How a gateway ends that has answers of models under way."""

from __future__ import annotations

import asyncio
import json
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

import httpx2
import pytest

from model_bodies import SIZED, asking
from model_upstream import FIRST, LAST, ModelUpstream
from pegboard.events import ShadowMeasured
from pegboard.model import Floats
from pegboard.stores import MemoryEvents
from pegboard.testing import FakeEncoder
from processes import alive, descendants, until
from served import Gateway, OpenGateway
from upstream_specs import SCRIPTED

CHAT = "/openai/v1/chat/completions"


@asynccontextmanager
async def streaming(gateway: Gateway, upstream: ModelUpstream) -> AsyncIterator[httpx2.Response]:
    """An answer of which the first part has come."""
    upstream.mood = "stream"
    async with gateway.http.stream("POST", CHAT, json=asking("openai_chat", stream=True)) as answer:
        await upstream.begun.wait()
        yield answer


async def test_a_stream_under_way_comes_to_its_end_and_then_it_is_over(
    gateway_of: OpenGateway, upstream: ModelUpstream
) -> None:
    async with gateway_of() as gateway, streaming(gateway, upstream) as answer:
        gateway.server.end(0)
        await until(lambda: not any(each.is_serving() for each in gateway.server.servers))
        assert not gateway.ending.done()
        upstream.release.set()
        assert await answer.aread() == FIRST + LAST
        await asyncio.wait_for(gateway.ending, 20)


async def test_nobody_new_is_served_while_answers_come_to_their_end(
    gateway_of: OpenGateway, upstream: ModelUpstream
) -> None:
    async with gateway_of() as gateway, streaming(gateway, upstream) as answer:
        gateway.server.end(0)
        await until(lambda: not any(each.is_serving() for each in gateway.server.servers))
        with pytest.raises(httpx2.ConnectError):
            await gateway.http.get("/healthz")
        upstream.release.set()
        await answer.aread()


async def test_a_stream_that_never_ends_is_cut_after_the_configured_time(
    gateway_of: OpenGateway, upstream: ModelUpstream
) -> None:
    async with gateway_of(drain_timeout=0.2) as gateway, streaming(gateway, upstream) as answer:
        gateway.server.end(0)
        with pytest.raises(httpx2.TransportError):
            await answer.aread()
        await asyncio.wait_for(gateway.ending, 20)


class NeverEncoding(FakeEncoder):
    """Its tools are never embedded."""

    async def encode(self, texts: Sequence[str]) -> Floats:
        await asyncio.Event().wait()
        raise AssertionError


async def test_an_end_waits_for_no_measurement_in_the_shadow(
    gateway_of: OpenGateway, upstream: ModelUpstream, events: MemoryEvents
) -> None:
    policy = {"profile": "semantic", "k": 1, "shadow": True, "least_tools": 0, "least_tokens": 0}
    llm = {"policy": policy, "shadow_timeout": 1000, "patience": 1000}
    body = asking("openai_chat", "renew the loan", ["renew_loan", "book_flight", "tune_piano"], schema=SIZED)
    async with gateway_of(drain_timeout=1000, llm=llm, parts={"encoder": NeverEncoding()}) as gateway:
        await gateway.http.post(CHAT, json=body)
        upstream.mood = "stream"
        async with gateway.http.stream("POST", CHAT, json=body | {"stream": True}) as answer:
            await upstream.begun.wait()
            gateway.server.end(0)
            await until(lambda: not any(each.is_serving() for each in gateway.server.servers))
            upstream.release.set()
            assert await answer.aread() == FIRST + LAST
        await asyncio.wait_for(gateway.ending, 60)
    assert [each.unmeasured for each in events.of(ShadowMeasured)] == ["shutdown"] * 2  # type: ignore[attr-defined]


async def test_a_second_signal_does_not_wait(gateway_of: OpenGateway, upstream: ModelUpstream) -> None:
    async with gateway_of(drain_timeout=1000) as gateway, streaming(gateway, upstream) as answer:
        gateway.server.end(0)
        gateway.server.end(0)
        with pytest.raises(httpx2.TransportError):
            await answer.aread()
        await asyncio.wait_for(gateway.ending, 20)


async def test_balancers_are_told_before_new_requests_are_refused(
    gateway_of: OpenGateway, upstream: ModelUpstream
) -> None:
    async with gateway_of(drain_wait=1000) as gateway:
        gateway.server.end(1000)
        ready = await gateway.http.get("/readyz")
        served = await gateway.http.post(CHAT, json=asking("openai_chat"))

    assert (ready.status_code, ready.json()["reasons"]) == (503, ["The process is shutting down."])
    assert served.status_code == 200
    assert served.headers["connection"] == "close", "a balancer would send more over this connection"


async def test_a_request_whose_client_hung_up_keeps_nobody_waiting(
    gateway_of: OpenGateway, upstream: ModelUpstream
) -> None:
    async with gateway_of(drain_timeout=1000) as gateway:
        async with streaming(gateway, upstream):
            gateway.server.end(0)
        await asyncio.wait_for(gateway.ending, 20)


@pytest.mark.skipif(sys.platform == "win32", reason="signals are POSIX")
@pytest.mark.requirement("M13")
async def test_sigterm_ends_answers_then_servers_then_the_process_and_every_line_of_its_log_is_json(
    upstream: ModelUpstream, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PEGBOARD_STATE_DIR", str(tmp_path))
    monkeypatch.setenv("PEGBOARD_CACHE_DIR", str(tmp_path))
    servers = {"scripted": {"command": sys.executable, "args": [SCRIPTED]}}
    llm = {"upstreams": {"openai": {"url": upstream.url}}, "policy": {"filter": False}}
    own = {"profile": "keyword", "drain_timeout": 60, "llm": llm}
    config = tmp_path / "servers.json"
    config.write_text(json.dumps({"mcpServers": servers, "pegboard": own}))
    words = ["serve", "--config", str(config), "--port", "0", "--json", "--log-format", "json"]
    process = subprocess.Popen(
        [sys.executable, "-m", "pegboard", *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    try:
        url = json.loads(await asyncio.to_thread(process.stdout.readline))["url"]
        await until(lambda: bool(descendants(process.pid)))
        children = descendants(process.pid)
        upstream.mood = "stream"
        async with (
            httpx2.AsyncClient(trust_env=False, timeout=60, base_url=url.removesuffix("/mcp")) as http,
            http.stream("POST", CHAT, json=asking("openai_chat", model="line\nbreak")) as answer,
        ):
            await upstream.begun.wait()
            process.send_signal(signal.SIGTERM)
            await asyncio.wait([asyncio.create_task(asyncio.to_thread(process.wait))], timeout=1)
            assert process.poll() is None
            upstream.release.set()
            assert await answer.aread() == FIRST + LAST
        _, logged = await asyncio.to_thread(process.communicate, timeout=60)
    finally:
        process.kill()
    lines = [json.loads(line) for line in logged.splitlines()]
    served = [line for line in lines if line["logger"] == "pegboard.access"]

    assert process.returncode == 0
    await until(lambda: not any(map(alive, children)))
    assert all({"time", "level", "logger", "message"} <= line.keys() for line in lines)
    assert [(line["level"], line["status"], line["outcome"]) for line in served] == [("info", 200, "off")]
