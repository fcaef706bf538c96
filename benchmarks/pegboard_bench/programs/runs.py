"""Does every task with single calls and with a program, through a gateway before real servers.

Searches are made on every board. Calls and programs are made on the largest one, and counted on all: they are the same
on each, and what differs is what a conversation carries besides. The searches rank by words and a bag of words: which
tool is found is not what is measured here.
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
from pegboard.gateways.mcp.gateway.meta_definitions import RUN
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
LARGEST = "all"


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


@dataclass(frozen=True, slots=True, kw_only=True)
class Made:
    """What a task's single calls and programs were and what they answered: (name, arguments, text, seconds)."""

    calls: Sequence[tuple[dict[str, Any], str, float]]
    programs: Sequence[tuple[str, str, float]]
    right: Mapping[str, bool]


class Board:
    """One gateway and its client. ``names`` are those on the wire by `server/name`."""

    def __init__(self, gateway: Gateway, client: Client, listed: Sequence[types.Tool]) -> None:
        self.client = client
        shown = [each.model_dump(by_alias=True, exclude_none=True) for each in listed]
        kept = [{key: each.get(key, "") for key in ("name", "description", "inputSchema")} for each in shown]
        self.with_programs = "\n".join(compact_json(each) for each in kept)
        self.definitions = "\n".join(compact_json(each) for each in kept if each["name"] != RUN)
        self.searches = any(each["name"] == "search_tools" for each in kept)
        self.tokens = sum(COUNTER.count([self.definitions]))
        names = gateway.view.names(None)
        self.names = {str(tool): name for tool, name in names.of.items()}
        self.functions = {name: function for function, name in function_names(names.of.values()).items()}

    async def call(self, name: str, arguments: Mapping[str, Any]) -> tuple[str, bool, float]:
        """The text that a tool answers, whether it is no error, and the seconds that it took."""
        started = time.monotonic()
        result = await self.client.call_tool(name, dict(arguments))
        text = "\n".join(each.text for each in result.content if isinstance(each, types.TextContent))
        return text, not result.is_error, time.monotonic() - started


@asynccontextmanager
async def boards(world: World, demo: Path, cache: Path) -> AsyncIterator[dict[str, Board]]:
    """The three boards of one host."""
    toolsets = {
        "ten": {"tools": (*USED, *BESIDE)},
        "hundred": {"tools": ("git/*", "time/*", "filesystem/*", "memory/*", "everything/*", *_padding())},
    }
    specs = servers_of({"servers": servers(world, demo, BOARDS["all"] - REAL)}, cache / "servers.toml")
    options: dict[str, Any] = {"toolsets": toolsets, "programs": "on", "scan": "off"}
    options |= {"cache_dir": cache, "state_dir": cache / "state", "start_wait": 60.0, "call_timeout": 120.0}
    settings = Settings(servers=specs, **options)
    parts = default_parts(settings, encoder=FakeEncoder(), embeddings=MemoryEmbeddings(), events=MemoryEvents())
    async with open_host(settings, parts) as host:
        made = {}
        clients = []
        try:
            for name in BOARDS:
                gateway = host.gateway("" if name == "all" else name)
                await gateway.list_tools()  # a client does not wait so long for its first answer
                client = Client(wire(gateway), cache=None)
                await client.__aenter__()
                clients.append(client)
                made[name] = Board(gateway, client, (await client.list_tools()).tools)
            yield made
        finally:
            for client in reversed(clients):
                await client.__aexit__(None, None, None)


def _padding() -> tuple[str, ...]:
    """The recorded tools of the board of a hundred."""
    tools = recorded(RECORDED, frozenset(REAL_SERVERS), BOARDS["hundred"] - REAL)
    return tuple(f"office/{each['name']}" for each in tools)


async def made(board: Board, task: Task) -> Made:
    """The task's calls and programs, on the board where they are made."""
    right = {"single": True, "program": True}
    calls, programs, text = [], [], ""
    for step in task.steps:
        text, fine, seconds = await board.call(
            "invoke_tool", {"name": board.names[step.tool], "arguments": step.arguments}
        )
        right["single"] = right["single"] and fine
        calls.append((step.arguments, text, seconds))
    for program in filter(None, (task.look, task.program)):
        written = program.replace("TOOL", board.functions[board.names[task.steps[0].tool]])
        text, fine, seconds = await board.call(RUN, {"program": written})
        right["program"] = right["program"] and fine
        programs.append((program, text, seconds))
    right["program"] = right["program"] and text.strip() == task.answer
    return Made(calls=calls, programs=programs, right=right)


async def counted(name: str, board: Board, task: Task, of: Made) -> Cell:
    """What the task costs on one board."""
    search = compact_json({"name": "search_tools", "arguments": {"query": task.search}})
    found = await board.call("search_tools", {"query": task.search}) if board.searches else None
    tool = board.names[task.steps[0].tool]

    def begun(definitions: str) -> Conversation:
        conversation = Conversation(COUNTER, definitions, task.text)
        if found is not None:
            conversation.write(search)
            conversation.read(found[0])
        return conversation

    def call(arguments: Mapping[str, Any]) -> str:
        plain = {"name": tool, "arguments": arguments}
        return compact_json({"name": "invoke_tool", "arguments": plain} if board.searches else plain)

    ways = {
        "single": begun(board.definitions),
        "parallel": begun(board.definitions),
        "program": begun(board.with_programs),
    }
    calls, results = [call(arguments) for arguments, _, _ in of.calls], [text for _, text, _ in of.calls]
    for written, text in zip(calls, results, strict=True):
        ways["single"].write(written)
        ways["single"].read(text)
    together = (
        [(calls, results)] if task.independent else [([one], [text]) for one, text in zip(calls, results, strict=True)]
    )
    for several, texts in together:
        ways["parallel"].write(*several)
        ways["parallel"].read("\n".join(texts))
    for program, text, _ in of.programs:
        written = program.replace("TOOL", board.functions[tool])
        ways["program"].write(compact_json({"name": RUN, "arguments": {"program": written}}))
        ways["program"].read(text)
    for conversation in ways.values():
        conversation.write(task.answer)
    seconds = {"single": sum(took for _, _, took in of.calls), "program": sum(took for _, _, took in of.programs)}
    last = compact_json({"name": RUN, "arguments": {"program": of.programs[-1][0]}})
    return Cell(
        task=task,
        board=name,
        listed=board.tokens,
        result_tokens=sum(COUNTER.count(results)) / len(results),
        call_tokens=sum(COUNTER.count(calls)) / len(calls),
        program_tokens=sum(COUNTER.count([last])),
        printed_tokens=sum(COUNTER.count([of.programs[-1][1]])),
        found=found is None or tool in [each["name"] for each in json.loads(found[0]).get("tools", ())],
        ways={
            way: Measured(
                tokens=each.tokens,
                bill=each.bill,
                requests=each.requests,
                right=of.right["program" if way == "program" else "single"],
                seconds=seconds["program" if way == "program" else "single"],
            )
            for way, each in ways.items()
        },
    )
