"""What is done to the gateway, one defect a function: how it is set up, and what is sent."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
import time
from collections.abc import Callable, Coroutine, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from typing import Any

import aiohttp

from pegboard_bench.hostile.gateway import Watched, gateway

Figures = Mapping[str, float]
Attack = Callable[[Watched], Coroutine[Any, Any, Figures | None]]
"""Does it; and what it found out besides, by name."""
SERVER = "pegboard_bench.hostile.servers"
SECONDS = 20.0
"""How long what goes on by itself is watched."""
HANG = 30.0
"""Seconds that an answer is waited for."""
BODY = 300 * 1024 * 1024
PIECE = 256 * 1024
JSON = {"content-type": "application/json"}
FLOODS, FLOOD = 6, 5_000
SOME = 20
ASKED = 40
"""Requests of the other caller, each time."""
PAUSE = 0.1


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """``longest`` is in seconds, ``memory`` in megabytes over the idle gateway."""

    longest: float
    memory: float
    more: Figures = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Scenario:
    """``defect`` is its code in tests/requirements.toml. ``web`` starts the server that is reached by HTTP, if any."""

    defect: str
    name: str
    says: str
    attack: Attack
    configuration: str = ""
    web: str = ""
    while_it_runs: bool = False
    """The harm is done by a server as it is listed, so it is counted from the start."""


def run(scenario: Scenario, folder: Path) -> Seen:
    """Raises RuntimeError where the gateway does not start."""
    with _beside(scenario.web) as port:
        text = scenario.configuration.format(python=sys.executable, server=SERVER, port=port)
        late = text if scenario.while_it_runs else ""
        with gateway(folder, CALM + text.removesuffix(late)) as watched:
            asyncio.run(_settled())
            watched.health.begin()
            if late:
                file = folder / "pegboard.toml"
                file.write_text(file.read_text("utf-8") + late, "utf-8")  # it is followed while it runs
            more = asyncio.run(scenario.attack(watched))
            return Seen(longest=watched.health.longest, memory=watched.health.peak_over_idle_mb, more=more or {})


async def _settled() -> None:
    """The tools of the calm server are embedded by then: what the encoder takes is not what an attack takes."""
    await asyncio.sleep(5)


@contextmanager
def _beside(mode: str) -> Iterator[int]:
    if not mode:
        yield 0
        return
    process = subprocess.Popen([sys.executable, "-m", SERVER, mode], stdout=subprocess.PIPE)
    try:
        yield int(process.stdout.readline() if process.stdout else 0)
    finally:
        process.kill()
        process.wait()


async def _mcp(watched: Watched, *requests: tuple[str, dict[str, Any]]) -> None:
    """A client of the handshake era that sends these, each whatever comes of the one before."""
    headers = {"accept": "application/json, text/event-stream", "content-type": "application/json"}
    timeout = aiohttp.ClientTimeout(total=HANG)
    hello = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "bench", "version": "1"}}
    async with aiohttp.ClientSession(headers=headers, timeout=timeout) as http:
        for number, (method, params) in enumerate((("initialize", hello), *requests)):
            message = {"jsonrpc": "2.0", "id": number, "method": method, "params": params}
            with suppress(aiohttp.ClientError, TimeoutError):
                async with http.post(f"{watched.url}/mcp?exposure=static", json=message) as answer:
                    http.headers.update(
                        {"mcp-session-id": answer.headers.get("mcp-session-id", "")} if not number else {}
                    )
                    await answer.read()


def calling(name: str, arguments: Mapping[str, Any]) -> Attack:
    async def attack(watched: Watched) -> None:
        call = {"name": "invoke_tool", "arguments": {"name": name, "arguments": dict(arguments)}}
        await _mcp(watched, ("tools/call", call))

    return attack


async def listed(watched: Watched) -> None:
    """The harm is in what a server lists; a client searches meanwhile."""
    await asyncio.sleep(SECONDS)
    await _mcp(watched, ("tools/call", {"name": "search_tools", "arguments": {"query": "does it"}}))


async def resources(watched: Watched) -> None:
    await _mcp(watched, ("resources/list", {}), ("resources/list", {}))


async def completion(watched: Watched) -> None:
    tools = [
        {"type": "function", "function": {"name": f"tool_{n}", "description": f"does {n}", "parameters": {}}}
        for n in range(20)
    ]
    body = {"model": "m", "messages": [{"role": "user", "content": "do it"}], "tools": tools}
    async with aiohttp.ClientSession(auto_decompress=False) as http:
        with suppress(aiohttp.ClientError, TimeoutError):
            async with http.post(f"{watched.url}/bad/v1/chat/completions", json=body) as answer:
                await answer.read()


async def half_open(watched: Watched) -> None:
    """Five hundred connections that begin a request and never end it."""
    opened = [await _connection(watched, b"POST /mcp HTTP/1.1\r\nHost: localhost\r\n") for _ in range(500)]
    await asyncio.sleep(5)
    for writer in opened:
        writer.close()


async def slow_bodies(watched: Watched) -> None:
    """Two hundred bodies that come byte by byte."""
    head = b"POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 100000\r\n\r\n{"
    opened = [await _connection(watched, head) for _ in range(200)]
    until = time.monotonic() + 5
    while time.monotonic() < until:
        for writer in opened:
            with suppress(OSError):
                writer.write(b" ")
        await asyncio.sleep(0.5)
    for writer in opened:
        writer.close()


async def large_bodies(watched: Watched) -> None:
    """Six bodies of 300 MB at once."""
    await asyncio.gather(*(_large_body(watched) for _ in range(6)))


async def _large_body(watched: Watched) -> None:
    async def pieces() -> Any:
        yield b'{"model": "m", "messages": [{"role": "user", "content": "'
        for _ in range(BODY // PIECE):
            yield b"x" * PIECE
        yield b'"}]}'

    async with aiohttp.ClientSession() as http:
        with suppress(aiohttp.ClientError, TimeoutError, OSError):
            async with http.post(f"{watched.url}/bad/v1/chat/completions", data=pieces()) as answer:
                await answer.read()


async def new_tools(watched: Watched) -> Figures:
    """One caller brings 30,000 tools that nobody knows, 5,000 a request, while another's requests have 20 new ones."""
    async with aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=HANG)) as http:
        await _asked(http, watched, "warm", SOME)
        alone = [await _asked(http, watched, f"alone{n}", SOME) for n in range(ASKED)]
        floods = [asyncio.create_task(_asked(http, watched, f"flood{n}", FLOOD)) for n in range(FLOODS)]
        await asyncio.sleep(PAUSE)
        beside = [await _asked(http, watched, f"beside{n}", SOME) for n in range(ASKED)]
        await asyncio.gather(*floods)
    said = {"alone": alone, "beside": beside}
    figures = {f"other_caller_median_s/{when}": median(each.seconds for each in asked) for when, asked in said.items()}
    figures |= {f"other_caller_longest_s/{when}": max(each.seconds for each in asked) for when, asked in said.items()}
    unfiltered = {when: sum(not each.filtered for each in asked) / ASKED for when, asked in said.items()}
    return figures | {f"other_caller_unfiltered/{when}": share for when, share in unfiltered.items()}


@dataclass(frozen=True, slots=True, kw_only=True)
class _Asked:
    seconds: float
    filtered: bool


async def _asked(http: aiohttp.ClientSession, watched: Watched, name: str, count: int) -> _Asked:
    """A request with so many tools that have a name of their own."""
    about = {"parameters": {"type": "object", "properties": {"path": {"type": "string"}}}}
    tools = [
        {"name": f"{name}_{n}", "description": f"Does the work number {n} of {name}"} | about for n in range(count)
    ]
    body = {
        "model": "m",
        "messages": [{"role": "user", "content": f"do the work number 7 of {name}"}],
        "tools": [{"type": "function", "function": tool} for tool in tools],
    }
    data = await asyncio.to_thread(lambda: json.dumps(body).encode())
    began = time.monotonic()
    async with http.post(f"{watched.url}/bad/v1/chat/completions", data=data, headers=JSON) as answer:
        await answer.read()
        return _Asked(
            seconds=time.monotonic() - began,
            filtered=answer.headers.get("x-pegboard-filter") in ("filtered", "unchanged"),
        )


async def _connection(watched: Watched, head: bytes) -> asyncio.StreamWriter:
    _, writer = await asyncio.open_connection(watched.host, watched.port)
    writer.write(head)
    with suppress(OSError):
        await writer.drain()
    return writer


def _stdio(mode: str) -> str:
    return f'[servers.hostile]\ncommand = "{{python}}"\nargs = ["-m", "{{server}}", "{mode}"]\n'


CALM = f'[servers.calm]\ncommand = "{sys.executable}"\nargs = ["-m", "{SERVER}", "few"]\n'
"""Every gateway has a server that means no harm."""
WEB = '[servers.hostile]\nurl = "http://127.0.0.1:{port}/mcp"\n'
MODELS = '[llm.upstreams.bad]\nurl = "http://127.0.0.1:{port}"\n'

SCENARIOS = (
    Scenario(
        defect="D6",
        name="mcp-json",
        says="a result of 1 MB that inflates to 1 GB",
        attack=calling("boom_0", {}),
        configuration=WEB,
        web="json",
    ),
    Scenario(
        defect="D6",
        name="mcp-events",
        says="the same as an event",
        attack=calling("boom_0", {}),
        configuration=WEB,
        web="events",
    ),
    Scenario(
        defect="D6",
        name="model-json",
        says="a completion of 1 MB that inflates to 1 GB",
        attack=completion,
        configuration=MODELS,
        web="json",
    ),
    Scenario(
        defect="D6",
        name="model-events",
        says="the same as events",
        attack=completion,
        configuration=MODELS,
        web="events",
    ),
    Scenario(
        defect="D7",
        name="pages",
        says="1,000 pages of 200 tools",
        attack=listed,
        configuration=_stdio("pages"),
        while_it_runs=True,
    ),
    Scenario(
        defect="D7",
        name="one-page",
        says="100,000 tools in one page",
        attack=listed,
        configuration=_stdio("one-page"),
        while_it_runs=True,
    ),
    Scenario(
        defect="D7",
        name="long-descriptions",
        says="20 tools with descriptions of 1 MB",
        attack=listed,
        configuration=_stdio("long-descriptions"),
        while_it_runs=True,
    ),
    Scenario(
        defect="D7",
        name="resources",
        says="resources without end, asked for twice",
        attack=resources,
        configuration=_stdio("resources"),
    ),
    Scenario(defect="D10", name="half-open", says="500 connections that end no request", attack=half_open),
    Scenario(defect="D10", name="slow-bodies", says="200 bodies that come byte by byte", attack=slow_bodies),
    Scenario(
        defect="D10",
        name="large-bodies",
        says="six bodies of 300 MB",
        attack=large_bodies,
        configuration=MODELS,
        web="calm",
    ),
    Scenario(
        defect="D10",
        name="new-tools",
        says="one caller brings 30,000 new tools, another 20",
        attack=new_tools,
        configuration=MODELS + "[llm.policy]\nleast_tokens = 0\n",
        web="calm",
    ),
)
