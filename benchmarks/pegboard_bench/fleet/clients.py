"""Every client before the fleet, one after the other: what its model saw, and whether its calls came through.

python -m pegboard_bench.fleet --clients    # as a part of `make bench-fleet`
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console

from pegboard.settings import load_settings
from pegboard.settings.server_spec import ServerSpec
from pegboard_bench import results
from pegboard_bench.coding_agents.agents import AGENTS
from pegboard_bench.coding_agents.conversations import Kept
from pegboard_bench.coding_agents.processes import provider
from pegboard_bench.fleet import sdk_sessions
from pegboard_bench.fleet.agent_clients import Agents, Conversation
from pegboard_bench.fleet.before_fleet import Doors, doors
from pegboard_bench.fleet.needs import TRANSPORTS, Need, Way, needs
from pegboard_bench.fleet.sdk_clients import Driver, drivers
from pegboard_bench.fleet.tokens import described
from pegboard_bench.page import write_page

Said = Callable[[str], None]
ALWAYS: tuple[Way, ...] = ("direct", "stdio", "http")
GROWING: tuple[Way, ...] = ("grows", "pushes")
LISTS_AGAIN = ("claude_code", "claude_code_listed", "gemini_cli", "opencode")
"""Agents that list again when told: only for them does a list grow."""
STDERR = Console(stderr=True)


@dataclass(frozen=True, slots=True, kw_only=True)
class Places:
    """Where everything is: ``installed`` by the scripts, ``scripts`` that drive SDKs, the program of the provider."""

    installed: Path
    scripts: Path
    upstream: Path
    folder: Path
    kept: Kept = field(default_factory=Kept)


Found = dict[str, dict[Way, Conversation]]


def measure(
    specs: Mapping[str, ServerSpec],
    config: Path,
    places: Places,
    said: Said,
    *,
    board: int = 0,
    only: Collection[str] = (),
) -> Found:
    """The conversations of every client by way; ``board``: tokens of all definitions, which SDKs list directly;
    ``only``: the names of some clients."""
    wanted = needs(places.installed / "repository")
    found: Found = {}
    with provider(places.upstream, places.folder) as behind, doors(specs, config, places.folder) as fleet:
        for driver in drivers(places.installed / "clients", places.scripts):
            if only and driver.name not in only:
                continue
            found[driver.name] = _of_sdk(driver, fleet, wanted, board, said)
        each = Agents(
            installed=places.installed / "agents", provider=behind, doors=fleet, needs=wanted, kept=places.kept
        )
        for name in [name for name in AGENTS if not only or name in only]:
            ways = ALWAYS + (GROWING if name in LISTS_AGAIN else ())
            found[name] = {way: _told(said, name, way, each.converse(name, way, places.folder)) for way in ways}
    return found


def _of_sdk(driver: Driver, fleet: Doors, wanted: Sequence[Need], board: int, said: Said) -> dict[Way, Conversation]:
    ways: dict[Way, Conversation] = {}
    if board:
        ways["direct"] = sdk_sessions.directly(board, wanted)
    for way in TRANSPORTS:
        ways[way] = _told(said, driver.name, way, asyncio.run(sdk_sessions.converse(driver, fleet, wanted, way)))
    return ways


def _told(said: Said, name: str, way: Way, found: Conversation) -> Conversation:
    said(f"{name}, {way}: {found.done} of {found.calls}, {found.tokens:,} tokens {found.trouble}")
    return found


def figures(found: Found) -> dict[str, float]:
    """By client: `calls_ok` is the share of calls on both transports whose result the model was given, `tokens` what
    it saw on stdio, `tokens_before` without Pegboard (left out where the client did not get through); `billed`
    likewise."""
    made: dict[str, float] = {}
    for name, ways in found.items():
        through = [ways[way] for way in TRANSPORTS]
        made[f"calls_ok/{name}"] = sum(each.done for each in through) / sum(each.calls for each in through)
        made[f"tokens/{name}"] = ways["stdio"].tokens
        for way, conversation in ways.items():
            if way in ("stdio", "http") or conversation.trouble:
                continue
            of = "before" if way == "direct" else way
            made[f"tokens_{of}/{name}"] = conversation.tokens
            if conversation.billed:
                made[f"billed_{of}/{name}"] = conversation.billed
        if ways["stdio"].billed:
            made[f"billed/{name}"] = ways["stdio"].billed
    return made


def conversations(found: Found) -> dict[str, Any]:
    return {name: {way: asdict(each) for way, each in ways.items()} for name, ways in found.items()}


def _say(text: str) -> None:
    STDERR.print(text, markup=False)


def _kept(out: Path) -> Found:
    """What the results file has of clients."""
    table = results.read(out / "fleet.json")["tables"]["clients"]["conversations"]
    return {name: {way: Conversation(**each) for way, each in ways.items()} for name, ways in table.items()}


async def _described(specs: Mapping[str, ServerSpec]) -> list[dict[str, Any]]:
    return [await described(name, spec) for name, spec in specs.items()]


def main(
    config: Annotated[Path, typer.Option(help="The fleet; written by scripts/install_fleet.py.")] = Path(
        ".demo/fleet.json"
    ),
    upstream: Annotated[Path, typer.Option(help="The provider of the agents; its argument is a port.")] = Path(
        "tests/servers/coding_provider.py"
    ),
    scripts: Annotated[Path, typer.Option(help="The programs that drive the clients of SDKs.")] = Path("tests/clients"),
    keep: Annotated[
        Path | None, typer.Option(help="Folder for the agents' conversations, with all that was sent.")
    ] = None,
    only: Annotated[
        list[str] | None, typer.Option(help="Only these clients; the others stay as they were measured.")
    ] = None,
    resume: Annotated[bool, typer.Option("--resume", help="Conversations that are kept are not held again.")] = False,
    out: Annotated[Path, typer.Option(help="Folder of fleet.json.")] = Path("bench/results"),
    page: Annotated[Path | None, typer.Option(help="Write the results as a section of this page too.")] = None,
) -> None:
    """Hold a conversation with every installed client, with and without Pegboard."""
    logging.getLogger("mcp").setLevel(logging.CRITICAL)  # some servers print to stdout what is no message
    specs = load_settings([config]).enabled_servers
    servers = asyncio.run(_described(specs))
    board, tools = (sum(each[key] for each in servers) for key in ("tokens", "tools"))
    kept = Kept(keep, resume)
    with kept.workplace() as folder:
        installed = config.parent.absolute()
        places = Places(installed=installed, scripts=scripts.absolute(), upstream=upstream, folder=folder, kept=kept)
        found = _kept(out) if only else {}
        found |= measure(specs, config, places, _say, board=board, only=only or ())
    table = {"servers": len(servers), "tools": tools, "tokens": board, "conversations": conversations(found)}
    results.extend(out / "fleet.json", "clients", figures=figures(found), table=table)
    if page is not None:
        write_page(page, out)


if __name__ == "__main__":
    typer.run(main)
