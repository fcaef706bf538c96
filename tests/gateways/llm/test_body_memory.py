"""Bodies under way share a bounded memory, and one without room passes as it comes; new tools delay no other caller."""

from __future__ import annotations

import asyncio
import gzip
import json
import threading
import time
from typing import Any

import pytest

from model_bodies import asking
from model_upstream import ModelUpstream
from pegboard.gateways.llm.formats.openai_chat.request import OpenAIChat
from pegboard.gateways.llm.formats.protocol import LlmRequest
from pegboard.gateways.llm.proxy.body_memory import BodyMemory, NoMemory
from pegboard.gateways.llm.proxy.http_bodies import RequestReader, UnreadBody
from pegboard.gateways.llm.selection import filter as filtering
from pegboard.gateways.llm.selection.policy import mark_protected
from pegboard.retrieval.encoders.onnx import FEW, OnnxEncoder
from pegboard.retrieval.index_thread import MANY
from served import OpenGateway

CHAT = "/v1/chat/completions"
PATIENCE = 60
JSON = {"content-type": "application/json"}


def large(size: int) -> bytes:
    return json.dumps(asking("openai_chat") | {"user": "x" * size}).encode()


@pytest.mark.requirement("D10")
def test_one_caller_takes_half_of_the_memory_and_others_the_rest() -> None:
    memory = BodyMemory(100)

    with memory.share("a") as first, memory.share("a") as second, memory.share("b") as third:
        first.take(40)
        with pytest.raises(NoMemory, match="This caller's"):
            second.take(11)
        second.take(10)
        third.take(50)
        assert memory.held == 100


@pytest.mark.requirement("D10")
def test_what_callers_took_together_is_bounded_and_free_in_the_end() -> None:
    memory = BodyMemory(100)
    with memory.share("a") as first, memory.share("b") as second, memory.share("c") as third:
        first.take(50)
        second.take(40)
        with pytest.raises(NoMemory, match="most_held"):
            third.take(11)

    assert memory.held == 0


@pytest.mark.requirement("D10")
async def test_a_body_without_room_passes_as_it_comes_and_the_next_is_filtered(
    gateway_of: OpenGateway, upstream: ModelUpstream
) -> None:
    body = large(3_000_000)
    async with gateway_of(llm={"most_held": 1_000_000}) as gateway:
        passed = await gateway.http.post(CHAT, content=body, headers=JSON)
        filtered = await gateway.http.post(CHAT, json=asking("openai_chat"))

    assert passed.status_code == 200, passed.text
    assert "This caller's bodies in flight may take 500,000 bytes" in passed.headers["x-pegboard-reason"]
    assert upstream.sent[0].body == body
    assert filtered.headers["x-pegboard-filter"] != "failed"


@pytest.mark.requirement("D10")
async def test_what_a_body_inflates_to_takes_memory_too(gateway_of: OpenGateway, upstream: ModelUpstream) -> None:
    body = large(3_000_000)
    async with gateway_of(llm={"most_held": 1_000_000}) as gateway:
        passed = await gateway.http.post(CHAT, content=gzip.compress(body), headers=JSON | {"content-encoding": "gzip"})

    assert "This caller's bodies" in passed.headers["x-pegboard-reason"]
    assert upstream.sent[0].body == body  # which undoes the coding


@pytest.mark.requirement("D10")
async def test_without_room_a_policy_that_fails_closed_refuses(gateway_of: OpenGateway) -> None:
    async with gateway_of(llm={"most_held": 1_000, "policy": {"fail": "closed"}}) as gateway:
        refused = await gateway.http.post(CHAT, content=large(100_000), headers=JSON)

    assert refused.status_code == 503


@pytest.mark.requirement("D10")
async def test_of_a_body_that_says_it_is_too_large_nothing_is_kept() -> None:
    asked: list[int] = []
    memory = BodyMemory(1_000_000)

    async def receive() -> dict[str, object]:
        asked.append(memory.held)
        return {"type": "http.request", "body": b"x" * 100, "more_body": len(asked) < 3}

    with memory.share("a") as share:
        found = await RequestReader(receive, 1_000).first(200, share, 300)
        assert isinstance(found, UnreadBody)
        assert asked == []
        assert b"".join([piece async for piece in found.body]) == b"x" * 300
    assert asked == [0, 0, 0]


@pytest.mark.requirement("D10")
async def test_parts_that_were_kept_are_given_back_once_they_are_sent() -> None:
    pieces = [b"a" * 60, b"b" * 60, b"c" * 60]
    memory = BodyMemory(1_000)

    async def receive() -> dict[str, object]:
        return {"type": "http.request", "body": pieces.pop(0), "more_body": bool(pieces)}

    with memory.share("a") as share:
        found = await RequestReader(receive, 1_000).first(100, share)
        assert isinstance(found, UnreadBody)
        held = [memory.held async for _ in found.body]
    assert held == [60, 60, 0]


@pytest.mark.requirement("D10")
async def test_a_request_of_more_tools_than_are_looked_at_passes_as_it_came(
    gateway_of: OpenGateway, upstream: ModelUpstream
) -> None:
    body = json.dumps(asking("openai_chat")).encode()
    async with gateway_of(llm={"most_tools": 1}) as gateway:
        passed = await gateway.http.post(CHAT, content=body, headers=JSON)

    assert "1 are allowed" in passed.headers["x-pegboard-reason"]
    assert upstream.sent[0].body == body


@pytest.mark.requirement("D10")
async def test_while_thousands_of_tools_are_looked_at_others_are_answered(
    gateway_of: OpenGateway, upstream: ModelUpstream, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun, go_on = threading.Event(), threading.Event()

    def slowly(request: LlmRequest, *given: Any) -> LlmRequest:
        if len(request.tools) > MANY:
            begun.set()
            go_on.wait(PATIENCE)
        return mark_protected(request, *given)

    monkeypatch.setattr(filtering, "mark_protected", slowly)
    about = {"type": "object"}
    tools = [{"type": "function", "function": {"name": f"t{n}", "parameters": about}} for n in range(MANY + 1)]
    async with gateway_of() as gateway:
        large = asyncio.create_task(gateway.http.post(CHAT, json=asking("openai_chat") | {"tools": tools}))
        await asyncio.to_thread(begun.wait, PATIENCE)
        small = await gateway.http.post(CHAT, json=asking("openai_chat"))
        waiting = not large.done()
        go_on.set()
        answer = await large

    assert (small.status_code, waiting, answer.status_code) == (200, True, 200)


@pytest.mark.requirement("D10")
async def test_large_bodies_are_read_one_at_a_time(
    gateway_of: OpenGateway, upstream: ModelUpstream, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Six threads that read at once kept the event loop from its turn, for half a second."""
    parse, counting, reads, most = OpenAIChat.parse, threading.Lock(), 0, 0

    def slowly(self: OpenAIChat, body: bytes, path: str) -> LlmRequest:
        nonlocal reads, most
        with counting:
            reads += 1
            most = max(most, reads)
        time.sleep(0.1)
        try:
            return parse(self, body, path)
        finally:
            with counting:
                reads -= 1

    monkeypatch.setattr(OpenAIChat, "parse", slowly)
    async with gateway_of() as gateway:
        body = large(filtering.LARGE + 1)
        sent = (gateway.http.post(CHAT, content=body, headers=JSON) for _ in range(4))
        answers = await asyncio.gather(*sent)

    assert [each.status_code for each in answers] == [200] * 4
    assert most <= 2, "one to shape its results, and one to select tools"


@pytest.mark.requirement("D10")
async def test_a_query_is_embedded_while_somebodys_new_tools_are() -> None:
    encoder = OnnxEncoder()
    begun, go_on = threading.Event(), threading.Event()
    loop = asyncio.get_running_loop()

    def hold() -> None:
        begun.set()
        go_on.wait(PATIENCE)

    holding = loop.run_in_executor(encoder._bulk, hold)
    await asyncio.to_thread(begun.wait, PATIENCE)
    tools = asyncio.create_task(encoder.encode(["a tool"] * (FEW + 1)))
    query = await encoder.encode(["a query"])
    waiting = not tools.done()
    go_on.set()
    await holding

    assert (query.shape, waiting, (await tools).shape) == ((1, 384), True, (FEW + 1, 384))
