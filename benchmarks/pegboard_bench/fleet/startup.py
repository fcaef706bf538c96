"""How long a fleet takes to start: each server alone, all at once without a gateway, and behind Pegboard."""

from __future__ import annotations

import asyncio
import os
import sqlite3
import tempfile
import time
from collections.abc import Awaitable, Callable, Mapping
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pegboard.settings.server_spec import ServerSpec
from pegboard_bench.fleet.gateways import PATIENT, called, gateway, listed, said, server, settled
from pegboard_bench.fleet.tokens import ARGUMENTS, TOOL

QUERY = "convert a time between timezones"
CALLED = "time"
"""The server of `TOOL`, which needs neither network nor credentials."""
NOTING_SECONDS = 20.0
"""Within which a gateway notes more definitions, if there are more to be scanned."""
MEGABYTE = 1024.0
"""In kilobytes, which is what the kernel counts in."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Search:
    """The first search after the start that found something: seconds since then, and who was not ready yet."""

    seconds: float
    not_ready: int


async def alone(spec: ServerSpec) -> float:
    """Seconds from a server's start until its tools are listed."""
    started = time.perf_counter()
    async with server(spec) as client:
        await listed(client)
        return time.perf_counter() - started


async def together(specs: Mapping[str, ServerSpec]) -> float:
    """Seconds until the last of all servers, started at once by a client that has no gateway, has listed its tools."""
    return max(await asyncio.gather(*(alone(spec) for spec in specs.values())))


async def first_list(config: Path, state: Path, **settings: object) -> float:
    """Seconds from the gateway's start to its first answer to tools/list."""
    started = time.perf_counter()
    async with gateway(config, state, **settings) as client:
        await listed(client)
        return time.perf_counter() - started


async def first_search(config: Path, state: Path, **settings: object) -> Search:
    """A search as the first thing after the start, again until it finds something."""
    started = time.perf_counter()
    async with gateway(config, state, **settings) as client:
        while True:
            answer = said(await called(client, "search_tools", {"query": QUERY}))
            if answer["tools"]:
                return Search(seconds=time.perf_counter() - started, not_ready=len(answer.get("servers_not_ready", {})))


async def called_alone(spec: ServerSpec) -> float:
    """Seconds from the start of a server without a gateway until it has listed its tools and answered a call."""
    started = time.perf_counter()
    async with server(spec) as client:
        await listed(client)
        await called(client, TOOL, ARGUMENTS)
        return time.perf_counter() - started


async def first_call(config: Path, state: Path, **settings: object) -> float:
    """Seconds from the gateway's start until it has answered a call as the first thing."""
    started = time.perf_counter()
    async with gateway(config, state, **settings) as client:
        await called(client, "invoke_tool", {"name": TOOL, "arguments": ARGUMENTS})
        return time.perf_counter() - started


async def all_ready(config: Path, state: Path, **settings: object) -> tuple[float, float]:
    """Seconds from the gateway's start until every server is ready; then the gateway's own memory in MB.

    A gateway that remembers their tools would say so of servers that are still starting: ``state`` is to be new.
    """
    started = time.perf_counter()
    async with gateway(config, state, start_wait=PATIENT, **settings) as client:
        await settled(client)
        seconds = time.perf_counter() - started
        await called(client, "search_tools", {"query": QUERY})
        return seconds, resident(own_gateway())


async def met(config: Path, state: Path) -> None:
    """Let a gateway meet the fleet for as long as one of a user would: until it has noted all definitions, which it
    would else scan at each start."""
    async with gateway(config, state, start_wait=PATIENT, connect_timeout=PATIENT) as client:
        await settled(client)
        await called(client, "search_tools", {"query": QUERY})
        before = -1
        while before < (before := _noted(state)):  # noqa: ASYNC110 - another process notes them
            await asyncio.sleep(NOTING_SECONDS)


def _noted(state: Path) -> int:
    """Definitions that are noted in a folder of state."""
    with closing(sqlite3.connect(f"file:{state / 'state.sqlite'}?mode=ro", uri=True)) as store:
        return int(store.execute("SELECT count(*) FROM pins").fetchone()[0])


def own_gateway() -> int:
    """The process id of the gateway that this process started. Raises RuntimeError where there is none."""
    for task in Path(f"/proc/{os.getpid()}/task").iterdir():
        for child in (task / "children").read_text().split():
            if b"pegboard\0mcp" in Path(f"/proc/{child}/cmdline").read_bytes():
                return int(child)
    raise RuntimeError("No gateway runs")


def resident(pid: int) -> float:
    """Resident memory, MB."""
    lines = Path(f"/proc/{pid}/status").read_text("utf-8").splitlines()
    return next(float(line.split()[1]) for line in lines if line.startswith("VmRSS:")) / MEGABYTE


Tick = Callable[[], None]
KINDS = 12


@dataclass(frozen=True, slots=True, kw_only=True)
class Startup:
    """``each`` server's own time alone, measured once; ``seconds`` by kind, one value a round in the same order.

    `new` is a start of which nothing is remembered, `again` one with the tools and embeddings of another, `lazy` the
    same where servers start with their first call. ``not_ready``: servers at the first search of a new start.
    ``memory``: MB.
    """

    each: dict[str, float]
    slowest: str
    seconds: dict[str, list[float]]
    not_ready: list[int]
    memory: list[float]

    def table(self) -> dict[str, Any]:
        rounded = {kind: [round(value, 3) for value in values] for kind, values in self.seconds.items()}
        return {
            "slowest": self.slowest,
            "seconds": rounded,
            "not_ready_at_first_search": self.not_ready,
            "memory_mb": [round(value, 1) for value in self.memory],
        }


async def measure(specs: Mapping[str, ServerSpec], config: Path, known: Path, number: int, tick: Tick) -> Startup:
    """In rounds; the order within a round rotates, so that what slows the machine slows all alike.

    ``known`` is the folder of a gateway that has been before this fleet already.
    """
    each = {}
    for name, spec in specs.items():
        each[name] = await alone(spec)
        tick()
    slowest = max(each, key=lambda name: each[name])
    not_ready: list[int] = []
    memory: list[float] = []

    async def ready(state: Path) -> float:
        seconds, megabytes = await all_ready(config, state)
        memory.append(megabytes)
        return seconds

    async def searched(state: Path, **settings: object) -> float:
        found = await first_search(config, state, **settings)
        if state != known:
            not_ready.append(found.not_ready)
        return found.seconds

    async def anew(measured: Callable[[Path], Awaitable[float]]) -> float:
        with tempfile.TemporaryDirectory(prefix="pegboard-bench-new-") as folder:
            return await measured(Path(folder))

    turns: dict[str, Callable[[], Awaitable[float]]] = {
        "slowest_alone": lambda: alone(specs[slowest]),
        "all_without_gateway": lambda: together(specs),
        "first_list/new": lambda: anew(lambda state: first_list(config, state)),
        "first_list/again": lambda: first_list(config, known),
        "first_search/new": lambda: anew(searched),
        "first_search/again": lambda: searched(known),
        "first_list/lazy": lambda: first_list(config, known, lazy=True),
        "first_search/lazy": lambda: searched(known, lazy=True),
        "all_ready": lambda: anew(ready),
        "called_alone": lambda: called_alone(specs[CALLED]),
        "first_call/again": lambda: first_call(config, known),
        "first_call/lazy": lambda: first_call(config, known, lazy=True),
    }
    await met(config, known)
    seconds: dict[str, list[float]] = {kind: [] for kind in turns}
    kinds = list(turns)
    for turn in range(number):
        shift = turn % len(kinds)
        for kind in kinds[shift:] + kinds[:shift]:
            seconds[kind].append(await turns[kind]())
            tick()
    return Startup(each=each, slowest=slowest, seconds=seconds, not_ready=not_ready, memory=memory)
