"""What is asked of the gateways, and what it cost."""

from __future__ import annotations

import asyncio
import json
import logging
import statistics
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import cycle
from typing import Any, TypeVar

import httpx2

from pegboard_bench.users.gateways import ANYBODY, WAIT_SECONDS, Gateways, Process

LOGGER = logging.getLogger(__name__)

PROTOCOL = "2026-07-28"
PREFIX = "io.modelcontextprotocol"
BLOCK = 20
"""Users who call in turns, until all their calls are made. More would let connections end between a user's calls."""
SHARE_BEFORE = 10
"""One in so many users is there before memory is first looked at: what the first ones bring is for all."""
STEADY = 6
Figures = dict[str, float]
T = TypeVar("T")


@dataclass
class Seen:
    """``crossed`` calls were made with another user's token; ``failed`` ones were answered with an error."""

    everybody: set[str]
    calls: int = 0
    crossed: int = 0
    failed: int = 0

    def add(self, whose: str, user: str) -> None:
        """``whose`` is what the server answered to a call of the user."""
        self.calls += 1
        if whose in self.everybody:
            self.crossed += whose != user
        else:
            self.failed += 1
            LOGGER.warning("A call of %s failed: %s", user, whose)

    def figures(self, of: str) -> Figures:
        return {f"calls/{of}": self.calls, f"crossed/{of}": self.crossed, f"failed/{of}": self.failed}


async def asked(http: httpx2.AsyncClient, url: str, bearer: str, method: str, **params: Any) -> dict[str, Any]:
    about = {"protocolVersion": PROTOCOL, "clientInfo": {"name": "bench", "version": "1"}, "clientCapabilities": {}}
    meta = {"_meta": {f"{PREFIX}/{name}": value for name, value in about.items()}}
    headers = {"accept": "application/json, text/event-stream", "mcp-protocol-version": PROTOCOL, "mcp-method": method}
    headers |= {"mcp-name": params["name"]} if "name" in params else {}
    headers |= {"authorization": f"Bearer {bearer}"} if bearer else {}
    body = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params | meta}
    response = await http.post(url, json=body, headers=headers)
    response.raise_for_status()
    text = response.text
    data = text if text.startswith("{") else text.rpartition("data: ")[2]
    return dict(json.loads(data)["result"])


async def ready(http: httpx2.AsyncClient, url: str, bearer: str) -> None:
    """The server's tools are listed to this user, and one was called."""
    end = time.monotonic() + WAIT_SECONDS
    while time.monotonic() < end:
        if "whose" in [each["name"] for each in (await asked(http, url, bearer, "tools/list"))["tools"]]:
            await called(http, url, bearer)
            return
        await asyncio.sleep(0.05)
    raise TimeoutError("the tools are not listed")


async def called(http: httpx2.AsyncClient, url: str, bearer: str) -> tuple[str, float]:
    """Whose token the server saw, and milliseconds."""
    began = time.perf_counter()
    result = await asked(http, url, bearer, "tools/call", name="whose", arguments={})
    return str(result["content"][0]["text"]), (time.perf_counter() - began) * 1000


async def in_turns(gateways: Gateways, calls: int) -> Figures:
    """Each call by a user's own connection is made beside one by the connection that all share, each first in every
    other pair."""
    [own], plain, tokens = gateways.own, gateways.plain, gateways.tokens
    seen = Seen({*gateways.tokens, ANYBODY})
    differences: list[float] = []
    own_ms: list[float] = []
    plain_ms: list[float] = []
    blocks: list[float] = []
    async with httpx2.AsyncClient(trust_env=False, timeout=WAIT_SECONDS) as http:
        await ready(http, plain.url, "")
        names = list(tokens)
        first, others = names[: max(1, len(names) // SHARE_BEFORE)], names[max(1, len(names) // SHARE_BEFORE) :]
        for user in first:
            await ready(http, own.url, tokens[user])
        before = await settled(own)
        for user in others:
            await ready(http, own.url, tokens[user])
        kept = await settled(own) - before
        spent = own.cpu_seconds(), plain.cpu_seconds()
        for block in in_blocks(tokens.items()):
            made: list[float] = []
            for at, (user, bearer) in enumerate(block * calls):
                pair = [(own.url, bearer), (plain.url, "")]
                answers = {}
                for url, shown in pair if at % 2 else reversed(pair):
                    answers[url] = await called(http, url, shown)
                seen.add(answers[own.url][0], user)
                own_ms.append(answers[own.url][1])
                plain_ms.append(answers[plain.url][1])
                made.append(own_ms[-1] - plain_ms[-1])
            differences += made
            blocks.append(statistics.median(made))
        cpu = own.cpu_seconds() - spent[0], plain.cpu_seconds() - spent[1]
    return seen.figures("one_process") | {
        "users": len(tokens),
        "p50_ms/own": statistics.median(own_ms),
        "p50_ms/plain": statistics.median(plain_ms),
        "p99_ms/own": statistics.quantiles(own_ms, n=100)[98],
        "p99_ms/plain": statistics.quantiles(plain_ms, n=100)[98],
        "added_p50_ms": statistics.median(differences),
        "added_p50_ms/lowest_block": min(blocks),
        "added_p50_ms/highest_block": max(blocks),
        "cpu_ms/own": cpu[0] / len(own_ms) * 1000,
        "cpu_ms/plain": cpu[1] / len(own_ms) * 1000,
        "kb_per_user": kept / len(others) if others else 0.0,
    }


async def settled(process: Process) -> int:
    """Resident KiB once tools are indexed and the last answers recorded: it no longer changes."""
    seen = [process.resident_kb()]
    while len(seen) < STEADY or max(seen[-STEADY:]) > min(seen[-STEADY:]):
        await asyncio.sleep(0.5)
        seen.append(process.resident_kb())
        if len(seen) > STEADY * 10:
            break
    return seen[-1]


async def round_robin(gateways: Gateways, calls: int) -> Seen:
    """Calls of all users at once, each on the next process."""
    addresses, seen = cycle(gateways.own), Seen({*gateways.tokens, ANYBODY})
    limits = httpx2.Limits(max_connections=BLOCK)
    async with httpx2.AsyncClient(trust_env=False, timeout=None, limits=limits) as http:
        for bearers in in_blocks(gateways.tokens.values()):
            await asyncio.gather(*(ready(http, each.url, bearer) for bearer in bearers for each in gateways.own))
        for _ in range(calls):
            answers = await asyncio.gather(
                *(called(http, next(addresses).url, bearer) for bearer in gateways.tokens.values())
            )
            for (whose, _), user in zip(answers, gateways.tokens, strict=True):
                seen.add(whose, user)
            next(addresses)  # so that a user's next call is on another process
    return seen


def in_blocks(all_of_them: Iterable[T]) -> Iterator[list[T]]:
    found = list(all_of_them)
    return (found[at : at + BLOCK] for at in range(0, len(found), BLOCK))
