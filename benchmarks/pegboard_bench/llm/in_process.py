"""What reading, routing and rewriting one request takes in process, without any network.

python -m pegboard_bench.llm.in_process
"""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import Awaitable, Callable
from statistics import median

from pegboard.catalog import Catalog
from pegboard.clock import SystemClock
from pegboard.compose import QUERY_CACHE
from pegboard.gateways.llm.formats.openai_chat.request import OpenAIChat
from pegboard.gateways.llm.formats.protocol import Codec
from pegboard.gateways.llm.selection.board_cache import BoardCache
from pegboard.gateways.llm.selection.policy import Policy
from pegboard.gateways.llm.selection.selector import Selector
from pegboard.retrieval import CachedEncoder, OnnxEncoder
from pegboard.routing import PROFILES, Profile
from pegboard.routing_board import RoutingBoard
from pegboard.stores import MemoryEmbeddings, MemoryEvents
from pegboard_bench.llm.body import TOOLS, chat_request

ROUNDS = 300
ASKS = 20


def boards() -> BoardCache:
    """With the encoder of the package on one thread, and caches in memory."""
    encoder = OnnxEncoder(threads=1)
    documents, queries = (
        CachedEncoder(encoder, MemoryEmbeddings()),
        CachedEncoder(encoder, MemoryEmbeddings(QUERY_CACHE)),
    )

    def board_of(catalog: Catalog, profile: Profile) -> RoutingBoard:
        return RoutingBoard(
            catalog, profile, documents=documents, queries=queries, events=MemoryEvents(), clock=SystemClock()
        )

    return BoardCache(board_of)


async def milliseconds(rounds: int, work: Callable[[int], Awaitable[object]]) -> float:
    """The median of so many rounds."""
    taken = []
    for number in range(rounds):
        started = time.perf_counter()
        await work(number)
        taken.append((time.perf_counter() - started) * 1000)
    return median(taken)


async def measure() -> dict[str, float]:
    """Milliseconds by what was done."""
    codec, selector, body = OpenAIChat(), Selector(boards()), chat_request()

    async def read(_: int) -> None:
        codec.parse(body, "")

    async def read_and_rewrite(_: int) -> None:
        codec.rewrite(codec.parse(body, ""), range(0, TOOLS, 12))

    figures = {
        "body_kb": len(body) / 1024,
        "parse_ms": await milliseconds(ROUNDS, read),
        "parse_and_rewrite_ms": await milliseconds(ROUNDS, read_and_rewrite),
    }
    for name in ("semantic", "hybrid"):
        figures |= await _filtering(name, codec, selector)
    return figures


async def _filtering(name: str, codec: Codec, selector: Selector) -> dict[str, float]:
    policy = Policy(profile=PROFILES[name])
    same = chat_request()
    others = [chat_request(f"{name}: approve invoice {number} of the printing shop.") for number in range(ASKS)]

    async def filtered(body: bytes) -> None:
        request = codec.parse(body, "")
        codec.rewrite(request, (await selector.select(codec, request, policy)).kept.places)

    return {
        f"{name}/first_ms": await milliseconds(1, lambda _: filtered(same)),
        f"{name}/repeated_ms": await milliseconds(ROUNDS, lambda _: filtered(same)),
        f"{name}/new_ms": await milliseconds(ASKS, lambda number: filtered(others[number])),
    }


if __name__ == "__main__":
    for figure, value in asyncio.run(measure()).items():
        sys.stdout.write(f"{figure:24} {value:8.3f}\n")
