"""A session's requests find the process that has it, whatever the store says of it."""

from __future__ import annotations

import asyncio
import socket
import sys
from collections.abc import Callable, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import httpx2
import pytest
from starlette.types import Message, Scope

from doors import ACCEPT, META, MODERN, Raw
from failing import Failing
from pegboard.clock import SystemClock
from pegboard.gateways import lasting_work
from pegboard.gateways.mcp.cluster import peers, session_affinity
from pegboard.gateways.mcp.cluster.forwarder import Forwarder, ForwardOutcome
from pegboard.gateways.mcp.cluster.session_affinity import SessionAffinity
from pegboard.gateways.mcp.gateway.host import Host
from pegboard.gateways.mcp.transport.http import HttpDoor
from pegboard.model import Replica
from pegboard.settings.server_spec import ServerSpec
from pegboard.stores import MemoryReplicas, MemorySessions, MemorySigningKeys
from pegboard.stores.retention import ALIVE
from pegboard.stores.sessions import session_key
from pegboard.testing import FakeClock

TALKATIVE = str(Path(__file__).parents[2] / "servers" / "talkative.py")

OpenDoor = Callable[..., AbstractAsyncContextManager[tuple[str, Host]]]


def replicas_for_good() -> MemoryReplicas:
    """Of processes that do not say again that they live, however long a test takes."""
    return MemoryReplicas(SystemClock(), ttl=3600)


@pytest.mark.requirement("design.store-down")
async def test_a_process_is_known_to_the_other_from_the_first_request_it_brings(
    open_door: OpenDoor, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(peers, "BEAT_SECONDS", 3600)  # nobody learns of the other by and by
    stores = {"sessions": Failing(MemorySessions(SystemClock())), "replicas": Failing(replicas_for_good())}
    async with (
        open_door(replaced=stores) as (first, _),
        open_door(replaced=stores) as (second, _),
        httpx2.AsyncClient(trust_env=False, timeout=60) as http,
    ):
        early = await Raw(http, first).begin()
        early.url = second
        assert await early.names() == META, "the second process brings it to the first"
        for store in stores.values():
            store.down = True
        late = await Raw(http, second).begin()
        late.url = first
        assert await late.names() == META, "the first process asks the second one for it"


async def test_a_session_begins_where_the_store_answers_if_one_process_alone_has_lost_it(
    open_door: OpenDoor, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(peers, "BEAT_SECONDS", 3600)
    sessions, replicas = MemorySessions(SystemClock()), replicas_for_good()
    ours, theirs = ({"sessions": Failing(sessions), "replicas": Failing(replicas)} for _ in range(2))
    async with (
        open_door(replaced=theirs) as (there, _),
        open_door(replaced=ours) as (here, _),
        httpx2.AsyncClient(trust_env=False, timeout=60) as http,
    ):

        async def losing(url: str, stores: dict[str, Failing]) -> None:
            for store in stores.values():
                store.down = True
            assert (await Raw(http, url, session="unknown").post("tools/list", {})).status == 404

        await losing(here, ours)
        client = await Raw(http, here).begin()
        for client.url in (there, here):
            assert await client.names() == META
        await losing(there, theirs)
        late = await Raw(http, here).begin()
        for late.url in (here, there):
            assert await late.names() == META


async def test_a_session_begins_here_if_the_process_that_is_asked_to_begin_it_never_answers(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(session_affinity, "BEGIN_SECONDS", 0.1)
    replicas, begun = Failing(replicas_for_good()), asyncio.Event()
    known = peers.Peers(replicas, Replica(id="here", url="http://here"), SystemClock())

    async def local(*_: Any) -> None:
        begun.set()

    async def receive() -> Message:
        if not body:
            await asyncio.Event().wait()
        return body.pop()

    with socket.create_server(("127.0.0.1", 0)) as silent:
        hangs = Replica(id="hangs", url=f"http://127.0.0.1:{silent.getsockname()[1]}")
        await replicas.store.beat(hangs)
        await known.beat()
        replicas.down = True
        await known.beat()
        gateway = SimpleNamespace(pending_inputs=SimpleNamespace())
        async with Forwarder(known).opened() as forwarder:
            shared = SessionAffinity(cast(Any, local), cast(Any, gateway), known, forwarder, cast(Any, None))
            body: list[Message] = [{"type": "http.request", "body": b'{"id": 1, "method": "initialize"}'}]
            scope: Scope = {"type": "http", "method": "POST", "path": "/mcp", "headers": []}
            await asyncio.wait_for(shared(scope, receive, cast(Any, None)), 60)
    assert begun.is_set()
    assert known.reachable == [], "it is not asked again at once"


async def test_who_alone_has_lost_the_store_does_not_wait_each_time_for_a_process_that_it_cannot_reach() -> None:
    """Its network may be broken, and not the store: each process that is asked takes seconds then."""
    clock, replicas = FakeClock(), Failing(MemoryReplicas(FakeClock()))
    known = peers.Peers(replicas, Replica(id="here", url="http://here"), clock)
    asked: list[str] = []

    async def forward(to: Replica, *_: Any, unless_unknown: bool, seconds: float) -> ForwardOutcome:
        assert unless_unknown, "another may not have this toolset yet"
        asked.append(to.id)
        return ForwardOutcome.GONE if to.id == "far" else ForwardOutcome.ELSEWHERE

    async def local(*_: Any) -> None:
        asked.append("here")

    async def begun() -> list[str]:
        asked.clear()
        await shared({"type": "http", "headers": []}, receive, send)
        return list(asked)

    receive = send = cast(Any, None)
    gateway = SimpleNamespace(pending_inputs=SimpleNamespace())
    shared = SessionAffinity(
        cast(Any, local), cast(Any, gateway), known, cast(Any, SimpleNamespace(forward=forward)), cast(Any, None)
    )
    for name in ("far", "near"):
        await replicas.store.beat(Replica(id=name, url=f"http://{name}"))
    await known.beat()
    replicas.down = True
    await known.beat()
    assert [await begun() for _ in range(2)] == [["far", "near", "here"], ["near", "here"]]
    clock.advance(peers.SHUNNED_SECONDS)
    assert await begun() == ["far", "near", "here"]


async def test_a_process_says_again_that_it_lives_after_it_failed_to(monkeypatch: pytest.MonkeyPatch) -> None:
    """Otherwise the others would take over the sessions of one that lives."""
    monkeypatch.setattr(peers, "BEAT_SECONDS", 0)
    monkeypatch.setattr(lasting_work, "RESTART_SECONDS", 0)
    again = asyncio.Event()

    class Broken(MemoryReplicas):
        beats = 0

        async def beat(self, me: Replica) -> Sequence[Replica]:
            self.beats += 1
            if self.beats == 2:
                raise RuntimeError
            if self.beats == 3:
                again.set()
            return await super().beat(me)

    async with peers.Peers(Broken(SystemClock()), Replica(id="a", url="http://a"), SystemClock()).known():
        await asyncio.wait_for(again.wait(), 60)


def test_after_a_failure_a_process_says_that_it_lives_before_the_others_take_it_for_dead() -> None:
    """Even if it took as long as a heartbeat to fail."""
    assert peers.BEAT_SECONDS * 3 + lasting_work.RESTART_SECONDS < ALIVE


@pytest.mark.requirement("D9")
async def test_who_starts_where_another_crashed_goes_on_with_its_sessions_at_once(open_door: OpenDoor) -> None:
    """The one before said a moment ago that it lives, and every request for its sessions would come back here."""
    store, replicas = MemorySessions(SystemClock()), MemoryReplicas(SystemClock())
    stores = {"sessions": store, "replicas": replicas}
    async with (
        open_door(replaced=stores) as (url, _),
        open_door(replaced=stores) as (other, _),
        httpx2.AsyncClient(trust_env=False, timeout=60) as http,
    ):
        direct, brought = await Raw(http, url).begin(), await Raw(http, url).begin()
        crashed = Replica(id="crashed", url=url.removesuffix("/mcp"))
        await replicas.beat(crashed)
        for client in (direct, brought):
            record = await store.load(session_key(client.session or ""))
            assert record is not None
            await store.save(replace(record, replica=crashed.id))
        brought.url = other

        assert (await brought.post("tools/list", {})).status == 200
        assert (await direct.post("tools/list", {})).status == 200
        assert crashed not in await replicas.beat(Replica(id="c", url="http://c"))


async def test_answers_of_a_client_without_a_session_reach_the_process_that_asked(open_door: OpenDoor) -> None:
    talkative = ServerSpec(name="talkative", command=sys.executable, args=(TALKATIVE, "legacy"))
    clock = SystemClock()
    stores: dict[str, Any] = {"sessions": MemorySessions(clock), "replicas": replicas_for_good()}
    stores["signing_keys"] = MemorySigningKeys()
    async with (
        httpx2.AsyncClient(trust_env=False, timeout=60) as http,
        open_door(talkative, replaced=stores) as (second, _),
    ):
        client = Raw(http, second, modern=True, capabilities={"elicitation": {"form": {}}})
        async with open_door(talkative, replaced=stores) as (first, _):

            async def answering() -> dict[str, Any]:
                call = {"name": "ask_legacy", "arguments": {"what": "elicit", "tag": "colour"}}
                client.url = first
                result = await client.result("tools/call", **call)
                [question] = result["inputRequests"]
                client.url = second
                said = {"action": "accept", "content": {"word": "blue"}}
                return call | {"requestState": result["requestState"], "inputResponses": {question: said}}

            answered = await client.result("tools/call", **await answering())
            assert answered["content"][0]["text"] == "colour: accept blue"
            late = await answering()
        refused = await client.post("tools/call", late)
        assert "has expired" in refused.message["error"]["message"]


async def test_a_body_without_end_is_read_no_further_than_where_it_would_be_served(open_door: OpenDoor) -> None:
    read, answers = 0, list[Message]()

    async def receive() -> Message:
        nonlocal read
        read += 1
        assert read < 100
        return {"type": "http.request", "body": bytes(1_000_000), "more_body": True}

    async def send(message: Message) -> None:
        answers.append(message)

    headers = [(b"host", b"127.0.0.1"), (b"accept", ACCEPT.encode()), (b"content-type", b"application/json")]
    headers.append((b"mcp-protocol-version", MODERN.encode()))
    scope: Scope = {"type": "http", "method": "POST", "path": "/mcp", "query_string": b"", "headers": headers}
    clock = SystemClock()
    others = peers.Peers(MemoryReplicas(clock), Replica(id="a", url="http://a"), clock)
    async with open_door() as (_, host), HttpDoor(host, peers=others).running() as door:
        await door(scope, receive, send)
    assert answers[0]["status"] == 413
    assert read == 5
