"""The main job, shown: one gateway before real MCP servers, five questions, real calls, one call that is refused.

    make demo

Installs the servers on the first run (scripts/install_servers.py), starts `pegboard mcp` on stdio as a client would,
and talks to it with the MCP SDK's own client.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mcp import Client, StdioServerParameters
from mcp.client.stdio import stdio_client
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from install_servers import install
from local_page import web_page
from pegboard.catalog import BpeCounter, compact_json

FOLDER = Path(".demo")
CONSOLE = Console(highlight=False)
QUIET = Path(os.devnull).open("w")  # noqa: SIM115 - for as long as the program runs


@dataclass(frozen=True)
class Question:
    """What a user asks; what a model would search for and call."""

    text: str
    search: str
    tool: str
    arguments: dict[str, Any]


def questions(folder: Path, page: str, names: set[str]) -> list[Question]:
    asked = [
        Question(
            "What time is it in Tokyo right now?",
            "current time in a timezone",
            "get_current_time",
            {"timezone": "Asia/Tokyo"},
        ),
        Question(
            "If it is 16:30 in New York, how late is it in Oslo?",
            "convert a time between timezones",
            "convert_time",
            {"source_timezone": "America/New_York", "time": "16:30", "target_timezone": "Europe/Oslo"},
        ),
        Question("What does my page say?", "fetch a URL and extract its contents", "fetch", {"url": page}),
        Question(
            "What was the last thing I committed?",
            "show commit history",
            "git_log",
            {"repo_path": str(folder / "repository")},
        ),
        Question(
            "Which files have I changed since?",
            "status of the git working tree",
            "git_status",
            {"repo_path": str(folder / "repository")},
        ),
    ]
    return [question for question in asked if question.tool in names]


async def main(folder: Path, config: Path) -> int:
    CONSOLE.rule("[bold]Pegboard before real MCP servers")
    before, names = await directly(json.loads(config.read_text())["mcpServers"])
    gateway = StdioServerParameters(
        command=sys.executable,
        args=["-m", "pegboard", "mcp", "--exposure", "static", "--config", str(config)],
        env=os.environ | {"PEGBOARD_START_WAIT": "60", "PEGBOARD_STATE_DIR": str(folder), "PEGBOARD_OFTEN_USED": "0"},
    )
    async with Client(gateway, cache=None) as client:
        listed = [tool.model_dump(by_alias=True, exclude_none=True) for tool in (await client.list_tools()).tools]
        CONSOLE.print(f"\nThe client is listed {len(listed)} tools: {', '.join(tool['name'] for tool in listed)}\n")
        with web_page() as page:
            asked = questions(folder, page, names)
            found = [await ask(client, question) for question in asked]
        spent = max(tokens for _, tokens in found)
        await refused(client)
    await report(before, tokens_of(listed), spent)
    missed = [question.text for question, (hit, _) in zip(asked, found, strict=True) if not hit]
    if missed:
        CONSOLE.print(f"[red]Not found: {missed}")
    return 1 if missed else 0


async def directly(servers: dict[str, Any]) -> tuple[dict[str, int], set[str]]:
    """What every server lists by itself: tokens by server, and all names."""
    tokens: dict[str, int] = {}
    names: set[str] = set()
    for name, entry in servers.items():
        parameters = StdioServerParameters(
            command=entry["command"], args=entry["args"], env=entry.get("env"), cwd=entry["cwd"]
        )
        async with Client(stdio_client(parameters, errlog=QUIET), cache=None) as client:
            tools = [tool.model_dump(by_alias=True, exclude_none=True) for tool in (await client.list_tools()).tools]
        tokens[name] = tokens_of(tools)
        names |= {tool["name"] for tool in tools}
    return tokens, names


async def ask(client: Client, question: Question) -> tuple[bool, int]:
    """Search, call what was found, print both; whether the tool was found, and the search's tokens."""
    search = await client.call_tool("search_tools", {"query": question.search})
    text = search.content[0].text
    found = [tool["name"] for tool in json.loads(text)["tools"]]
    hit = question.tool in found
    CONSOLE.print(f"[bold]{escape(question.text)}")
    CONSOLE.print(f"  search  {question.search}")
    CONSOLE.print(f"  found   {', '.join(f'[green]{n}[/]' if n == question.tool else n for n in found)}")
    if hit:
        result = await client.call_tool("invoke_tool", {"name": question.tool, "arguments": question.arguments})
        answer = " ".join(result.content[0].text.split())
        CONSOLE.print(f"  called  {question.tool}\n  answer  {escape(answer[:160])}\n")
        hit = not result.is_error
    return hit, BpeCounter().count([text])[0]


async def refused(client: Client) -> None:
    """The guard answers a call of a tool that does not exist, and one with wrong arguments; no server sees them."""
    CONSOLE.print("[bold]Calls that the guard refuses")
    for name, arguments in (("get_curent_time", {"timezone": "Asia/Tokyo"}), ("get_current_time", {"zone": "Tokyo"})):
        result = await client.call_tool("invoke_tool", {"name": name, "arguments": arguments})
        error = json.loads(result.content[0].text)
        hint = f" Available: {', '.join(error['available'])}" if error.get("available") else ""
        CONSOLE.print(f"  [red]{error['error']}[/]  {escape(error['message'])}{hint}")
        if not result.is_error:
            raise SystemExit(f"the gateway let {name} through")


async def report(before: dict[str, int], listed: int, search: int) -> None:
    table = Table("", "tokens", title="\nTool definitions in every request (cl100k_base)", title_justify="left")
    for name, tokens in before.items():
        table.add_row(name, f"{tokens:,}")
    total = sum(before.values())
    table.add_row("[bold]all servers, directly", f"[bold]{total:,}", end_section=True)
    table.add_row("[bold]through Pegboard, meta-tools counted", f"[bold]{listed:,}")
    table.add_row("… and a search's answer, at most", f"{search:,}")
    CONSOLE.print(table)
    CONSOLE.print(f"[bold green]{1 - listed / total:.0%} less in every request[/]\n")


def tokens_of(tools: list[dict[str, Any]]) -> int:
    keys = ("name", "description", "inputSchema")
    return sum(BpeCounter().count([compact_json({key: tool.get(key) for key in keys}) for tool in tools]))


if __name__ == "__main__":
    sys.exit(asyncio.run(main(FOLDER.absolute(), install(FOLDER))))
