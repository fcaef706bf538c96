"""A provider's compressed answer passes as it came, and what is read of it is bounded by what it stands for."""

from __future__ import annotations

import tracemalloc
import zlib
from collections.abc import AsyncIterator

import pytest

from pegboard.errors import UpstreamError
from pegboard.gateways.llm.formats.registry import codec_for
from pegboard.gateways.llm.proxy.http_bodies import MOST_INFLATED, ResponseObserver
from pegboard.gateways.llm.proxy.model_round import ModelRound
from pegboard.gateways.llm.proxy.model_upstream import Answer
from pegboard.gateways.llm.tool_search.search_loop import MOST_ANSWER, _plain

CHAT = codec_for("/v1/chat/completions")
OPENING = (
    b'data: {"id": "chatcmpl-1", "choices": [{"delta": {"tool_calls": [{"function": {"name": "renew_loan"}}]}}]}\n\n'
)


def bomb(opening: bytes, size: int) -> bytes:
    packer = zlib.compressobj(9, wbits=31)
    parts = [packer.compress(opening)]
    parts += [packer.compress(b"x" * 2**20) for _ in range(size // 2**20)]
    return b"".join([*parts, packer.flush()])


def answer(body: bytes, kind: bytes) -> Answer:
    async def pieces() -> AsyncIterator[bytes]:
        for at in range(0, len(body), 65536):
            yield body[at : at + 65536]

    return Answer(status=200, headers=[(b"content-type", kind), (b"content-encoding", b"gzip")], pieces=pieces())


@pytest.mark.requirement("D6")
@pytest.mark.parametrize("kind", [b"application/json", b"text/event-stream"])
async def test_following_a_bomb_takes_no_memory_and_keeps_what_was_read_before(kind: bytes) -> None:
    came = answer(bomb(OPENING, 16 * MOST_INFLATED), kind)
    following = ResponseObserver(CHAT, came)
    tracemalloc.start()
    try:
        async for piece in came.pieces:
            following.feed(piece)
        following.finish()
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()

    assert peak < 3 * MOST_INFLATED
    assert following.called == (["renew_loan"] if kind == b"text/event-stream" else [])


async def read(came: Answer) -> list[int]:
    return [len(piece) async for piece in _plain(came, ModelRound(asked=0))]


@pytest.mark.requirement("D6")
async def test_an_answer_that_is_held_for_the_way_back_is_bounded_by_what_it_stands_for() -> None:
    tracemalloc.start()
    try:
        with pytest.raises(UpstreamError, match="more than"):
            await read(answer(bomb(b"", 2 * MOST_ANSWER), b"application/json"))
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()

    assert peak < MOST_ANSWER


async def test_what_is_not_of_its_coding_is_the_providers_failure() -> None:
    with pytest.raises(UpstreamError, match="content coding"):
        await read(answer(b"plain", b"application/json"))
