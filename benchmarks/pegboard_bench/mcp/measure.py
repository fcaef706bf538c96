"""Latency of calls and lists, in rounds: every contender's turn in each, in an order that rotates.

What slows the machine for a while slows all alike, and a figure is the median over rounds of a ratio within one round.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from statistics import median, quantiles
from typing import Any

import mcp_types as types
from mcp import Client
from pydantic import TypeAdapter

from pegboard_bench.mcp.upstream import ECHO

ANY: TypeAdapter[dict[str, Any]] = TypeAdapter(dict[str, Any])
TEXT = "What goes in comes out again, unchanged."
CONCURRENT = 16

Once = Callable[[Client], Awaitable[None]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Work:
    """One kind of work: ``batch`` times in a contender's turn; its value is milliseconds each."""

    name: str
    once: Once
    batch: int
    at_once: int = 1


async def call(client: Client) -> None:
    """Raises RuntimeError where the answer is another than the server's."""
    params = types.CallToolRequestParams(name=ECHO, arguments={"text": TEXT, "limit": 3})
    result = await client.session.send_request(types.CallToolRequest(params=params), ANY)  # type: ignore[type-var]
    if result["content"] != [{"type": "text", "text": TEXT}]:
        raise RuntimeError(f"Not the echo: {result!r}")


async def listing(client: Client) -> None:
    result = await client.session.send_request(types.ListToolsRequest(), ANY)  # type: ignore[type-var]
    if ECHO not in {tool["name"] for tool in result["tools"]}:
        raise RuntimeError("The echo is not listed")


WORKS = (
    Work(name="hop", once=call, batch=10),
    Work(name="list", once=listing, batch=5),
    Work(name="hop_16", once=call, batch=48, at_once=CONCURRENT),
)


async def rounds(
    clients: Mapping[str, Client], work: Work, number: int, tick: Callable[[], None] = lambda: None
) -> dict[str, list[float]]:
    """Milliseconds a request, one value a round and contender. The first round only warms up."""
    names = list(clients)
    times: dict[str, list[float]] = {name: [] for name in names}
    for turn in range(number + 1):
        shift = turn % len(names)
        for name in names[shift:] + names[:shift]:
            took = await _turn(clients[name], work)
            if turn:
                times[name].append(took)
        tick()
    return times


async def _turn(client: Client, work: Work) -> float:
    """Milliseconds a request: the median where one follows the other, the mean where many run at once."""
    if work.at_once > 1:
        started = time.perf_counter()
        await asyncio.gather(*(_series(client, work.once, work.batch // work.at_once) for _ in range(work.at_once)))
        return (time.perf_counter() - started) * 1000 / work.batch
    return median(await _series(client, work.once, work.batch))


async def _series(client: Client, once: Once, number: int) -> list[float]:
    times = []
    for _ in range(number):
        started = time.perf_counter()
        await once(client)
        times.append((time.perf_counter() - started) * 1000)
    return times


@dataclass(frozen=True, slots=True, kw_only=True)
class Spread:
    """Median and quartiles over the rounds."""

    median: float
    low: float
    high: float

    def row(self) -> dict[str, float]:
        return {"median": round(self.median, 4), "q25": round(self.low, 4), "q75": round(self.high, 4)}


def spread(values: Sequence[float]) -> Spread:
    low, _, high = quantiles(values, n=4, method="inclusive")
    return Spread(median=median(values), low=low, high=high)


def ratio(times: Mapping[str, Sequence[float]], over: str, under: str) -> Spread:
    """One contender's time over another's, round by round."""
    return spread([a / b for a, b in zip(times[over], times[under], strict=True)])
