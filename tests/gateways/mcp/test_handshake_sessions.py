"""Answers to sessions of the handshake era on HTTP: JSON at once, or an event stream."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager
from typing import Any

import httpx2
import pytest
from mcp.server.streamable_http import EventMessage
from mcp_types import JSONRPCResponse

from doors import Raw
from pegboard.gateways.mcp.gateway.host import Host
from pegboard.gateways.mcp.transport import handshake_sessions
from pegboard.gateways.mcp.transport.handshake_sessions import MOST_EVENTS, KeptEvents

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


async def test_of_an_answer_in_json_no_event_is_kept(
    open_door: OpenDoor, http: httpx2.AsyncClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    made: list[KeptEvents] = []

    class Noted(KeptEvents):
        def __init__(self) -> None:
            super().__init__()
            made.append(self)

    monkeypatch.setattr(handshake_sessions, "KeptEvents", Noted)
    monkeypatch.setattr(handshake_sessions, "QUICK_SECONDS", 60.0)
    async with open_door() as (url, _):
        client = await Raw(http, url).begin()
        before = [dict(each._events) for each in made]
        assert kind((await client.post("tools/call", {"name": "echo", "arguments": {"text": "a"}})).headers) == JSON
        assert [each._events for each in made] == before


async def resumed(kept: KeptEvents, after: str) -> list[Any]:
    """The results that a client gets which resumes after this event."""
    found: list[EventMessage] = []

    async def send(event: EventMessage) -> None:
        found.append(event)

    await kept.replay_events_after(after, send)
    return [each.message.result for each in found]  # type: ignore[union-attr]


def answer(number: int, text: str = "") -> JSONRPCResponse:
    return JSONRPCResponse(jsonrpc="2.0", id=number, result={"text": text})


async def test_the_events_of_a_long_call_outlive_quick_ones() -> None:
    kept = KeptEvents()
    first = await kept.store_event("long", None)
    for number in range(2 * MOST_EVENTS):
        await kept.store_event(str(number), None)
        await kept.store_event(str(number), answer(number))
        kept.forget(str(number))
    await kept.store_event("long", answer(-1, "the result"))
    assert await resumed(kept, first) == [{"text": "the result"}]


async def test_of_long_events_the_newest_is_kept_and_as_many_before_it_as_there_is_room_for(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(handshake_sessions, "MOST_CHARACTERS", 1_000)
    kept = KeptEvents()
    numbers = [await kept.store_event("s", answer(number, "x" * 400)) for number in range(5)]
    assert [str(each) for each in kept._events] == numbers[-3:]
    newest = await kept.store_event("s", answer(5, "y" * 5_000))
    assert await resumed(kept, numbers[-1]) == [{"text": "y" * 5_000}]
    assert [str(each) for each in kept._events][-1] == newest
    await kept.store_event("s", None)
    assert len(kept._events) == 1
