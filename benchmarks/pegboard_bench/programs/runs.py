"""Runs every task on every board, with single calls and with a program, through a gateway before real servers.

The searches rank by words and a bag of words: which tool is found is not what is measured here.
"""

from __future__ import annotations

import json
import time
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import mcp_types as types
from mcp import Client

from pegboard.catalog import Catalog, compact_json
from pegboard.compose import default_parts
from pegboard.gateways.mcp.gateway.gateway import Gateway
from pegboard.gateways.mcp.gateway.host import open_host
from pegboard.gateways.mcp.transport.gateway_server import wire
from pegboard.programs.function_names import function_names
from pegboard.settings import Settings
from pegboard.settings.client_configs import servers_of
from pegboard.stores import MemoryEmbeddings, MemoryEvents
from pegboard.testing import FakeEncoder
from pegboard_bench.programs.conversation import Conversation
from pegboard_bench.programs.listed_server import recorded
from pegboard_bench.programs.tasks import Task
from pegboard_bench.programs.world import REAL_SERVERS, RECORDED, World, servers

COUNTER = Catalog.build([]).counter
BOARDS: Mapping[str, int] = {"ten": 10, "hundred": 100, "all": 800}
USED = (
    *("filesystem/read_text_file", "filesystem/get_file_info", "filesystem/list_directory", "git/git_log"),
    *("git/git_show", "time/convert_time", "memory/open_nodes", "everything/get-sum"),
)
BESIDE = ("git/git_status", "filesystem/search_files")
REAL = 50
"""Tools of the real servers."""
MODES = ("off", "on")


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """One way of one task on one board. ``first`` is what the first request sends of definitions, in tokens."""

    tokens: int
    bill: float
    requests: int
    right: bool
    seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Cell:
    """One task on one board. ``parallel`` are single calls of which independent ones are made in one request."""

    task: Task
    board: str
    listed: int
    result_tokens: float
    call_tokens: float
    program_tokens: int
    printed_tokens: int
    found: bool
    ways: Mapping[str, Measured]


class Board:
    """One gateway and its client. ``tools`` are the names on the wire by `server/name`."""

    def __init__(self, gateway: Gateway, client: Client, definitions: Sequence[types.Tool]) -> None:
        self.client = client
        shown = [each.model_dump(by_alias=True, exclude_none=True) for each in definitions]
        kept = [{key: each.get(key, "") for key in ("name", "description", "inputSchema")} for each in shown]
        self.definitions = "\n".join(compact_json(each) for each in kept)
        self.searches = any(each["name"] == "search_tools" for each in kept)
        self.tokens = sum(COUNTER.count([self.definitions]))
        names = gateway.view.names(None)
        self.names = {str(tool): name for tool, name in names.of.items()}
        self.functions = {name: function for function, name in function_names(names.of.values()).items()}

    async def call(self, name: str, arguments: Mapping[str, Any]) -> tuple[str, bool]:
        """The text that a tool answers, and whether it is no error."""
        result = await self.client.call_tool(name, dict(arguments))
        text = "\n".join(each.text for each in result.content if isinstance(each, types.TextContent))
        return text, not result.is_error


@asynccontextmanager
async def boards(world: World, demo: Path, cache: Path, mode: str) -> AsyncIterator[dict[str, Board]]:
    """The three boards of one host, with or without programs."""
    toolsets = {
        "ten": {"tools": (*USED, *BESIDE)},
        "hundred": {"tools": ("git/*", "time/*", "filesystem/*", "memory/*", "everything/*", *_padding())},
    }
    specs = servers_of({"servers": servers(world, demo, BOARDS["all"] - REAL)}, cache / "servers.toml")
    options: dict[str, Any] = {"toolsets": toolsets, "programs": mode}
    options |= {"cache_dir": cache, "state_dir": cache / mode, "start_wait": 60.0, "call_timeout": 120.0}
    settings = Settings(servers=specs, **options)
    parts = default_parts(settings, encoder=FakeEncoder(), embeddings=MemoryEmbeddings(), events=MemoryEvents())
    async with open_host(settings, parts) as host:
        made = {}
        clients = []
        try:
            for name in BOARDS:
                gateway = host.gateway("" if name == "all" else name)
                client = Client(wire(gateway), cache=None)
                await client.__aenter__()
                clients.append(client)
                await client.call_tool("list_tool_categories", {})
                made[name] = Board(gateway, client, (await client.list_tools()).tools)
            yield made
        finally:
            for client in reversed(clients):
                await client.__aexit__(None, None, None)


def _padding() -> tuple[str, ...]:
    """The recorded tools of the board of a hundred."""
    tools = recorded(RECORDED, frozenset(REAL_SERVERS), BOARDS["hundred"] - REAL)
    return tuple(f"office/{each['name']}" for each in tools)


async def with_calls(board: Board, task: Task) -> tuple[dict[str, Measured], bool, float, float]:
    """Single calls, one in each request and independent ones together; whether the search found the tool; tokens of a
    result and of a call."""
    started = time.monotonic()
    ways = {way: Conversation(COUNTER, board.definitions, task.text) for way in ("single", "parallel")}
    found, right = await _searched(board, task, list(ways.values()))
    results, calls = [], []
    for step in task.steps:
        name, arguments = board.names[step.tool], step.arguments
        if board.searches:
            name, arguments = "invoke_tool", {"name": name, "arguments": arguments}
        text, fine = await board.call(name, arguments)
        right = right and fine
        results.append(text)
        calls.append(compact_json({"name": name, "arguments": arguments}))
    for said, text in zip(calls, results, strict=True):
        ways["single"].write(said)
        ways["single"].read(text)
    if task.independent:
        ways["parallel"].write(*calls)
        for text in results:
            ways["parallel"].read(text)
    else:
        ways["parallel"] = ways["single"]
    for conversation in {id(each): each for each in ways.values()}.values():
        conversation.write(task.answer)
    seconds = time.monotonic() - started
    measured = {
        way: Measured(tokens=each.tokens, bill=each.bill, requests=each.requests, right=right, seconds=seconds)
        for way, each in ways.items()
    }
    steps = len(task.steps)
    return measured, found, sum(COUNTER.count(results)) / steps, sum(COUNTER.count(calls)) / steps


async def with_program(board: Board, task: Task) -> tuple[Measured, int, int]:
    """A program, after one that looks at a result where its form is not known; tokens of it and of what it prints."""
    started = time.monotonic()
    conversation = Conversation(COUNTER, board.definitions, task.text)
    _, right = await _searched(board, task, [conversation])
    function = board.functions[board.names[task.steps[0].tool]]
    text = call = ""
    for program in filter(None, (task.look, task.program)):
        written = program.replace("TOOL", function)
        call = compact_json({"name": "run_program", "arguments": {"program": written}})
        conversation.write(call)
        text, fine = await board.call("run_program", {"program": written})
        conversation.read(text)
        right = right and fine
    conversation.write(task.answer)
    right = right and text.strip() == task.answer
    measured = Measured(
        tokens=conversation.tokens,
        bill=conversation.bill,
        requests=conversation.requests,
        right=right,
        seconds=time.monotonic() - started,
    )
    written_tokens, printed = COUNTER.count([call, text])
    return measured, written_tokens, printed


async def _searched(board: Board, task: Task, conversations: Sequence[Conversation]) -> tuple[bool, bool]:
    """The search that comes first where tools are not listed: whether it found the tool, and was answered."""
    if not board.searches:
        return True, True
    arguments = {"query": task.search}
    text, fine = await board.call("search_tools", arguments)
    for conversation in conversations:
        conversation.write(compact_json({"name": "search_tools", "arguments": arguments}))
        conversation.read(text)
    wanted = board.names[task.steps[0].tool]
    return wanted in [each["name"] for each in json.loads(text).get("tools", ())], fine
