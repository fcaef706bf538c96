"""Answers to sessions of the handshake era on HTTP: JSON at once, or an event stream."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager
from typing import Any

import httpx2
import pytest

from doors import Raw
from pegboard.gateways.mcp.gateway.host import Host
from pegboard.gateways.mcp.transport import handshake_sessions

OpenDoor = Callable[..., AbstractAsyncContextManager[tuple[str, Host]]]
JSON, STREAM = "application/json", "text/event-stream"


@pytest.fixture
async def http() -> AsyncIterator[httpx2.AsyncClient]:
    async with httpx2.AsyncClient(trust_env=False, timeout=60) as client:
        yield client


def kind(headers: Any) -> str:
    return str(headers["content-type"]).partition(";")[0]


async def test_a_quick_answer_comes_in_json(open_door: OpenDoor, http: httpx2.AsyncClient) -> None:
    async with open_door() as (url, _):
        client = await Raw(http, url).begin()
        answer = await client.post("tools/call", {"name": "echo", "arguments": {"text": "hello"}})
        assert answer.message["result"]["content"][0]["text"] == "hello"
        assert kind(answer.headers) == JSON
        assert answer.headers["mcp-session-id"] == client.session


async def test_what_is_said_before_the_answer_comes_first_on_an_event_stream(
    open_door: OpenDoor, http: httpx2.AsyncClient
) -> None:
    async with open_door() as (url, _):
        client = await Raw(http, url).begin()
        asked = {"name": "progress", "arguments": {}, "_meta": {"progressToken": "p"}}
        answer = await client.post("tools/call", asked)
        assert answer.message["result"]["content"][0]["text"] == "done"
        assert answer.heard == ["notifications/progress"] * 3
        assert kind(answer.headers) == STREAM


async def test_an_answer_that_takes_longer_comes_on_a_stream_that_can_be_resumed(
    open_door: OpenDoor, http: httpx2.AsyncClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(handshake_sessions, "QUICK_SECONDS", 0.0)
    async with open_door() as (url, _):
        client = await Raw(http, url).begin()
        message, headers = client.prepared("tools/call", {"name": "echo", "arguments": {"text": "late"}})
        found = await http.post(url, json=message, headers=headers)
        assert kind(found.headers) == STREAM
        first, *_ = found.text.split("\r\n\r\n")
        assert first.splitlines()[0].startswith("id: "), "the event from which the client resumes"
        assert '"late"' in found.text


async def test_a_request_that_cannot_be_read_is_refused_as_the_sdk_refuses_it(
    open_door: OpenDoor, http: httpx2.AsyncClient
) -> None:
    async with open_door() as (url, _):
        client = await Raw(http, url).begin()
        _, headers = client.prepared("tools/call", {})
        found = await http.post(url, content=b"{", headers=headers | {"content-type": JSON})
        assert (found.status_code, found.json()["error"]["code"]) == (400, -32700)
        assert await client.call("echo", text="still here") == "still here"
