"""Every client before the fleet, one after the other: what its model saw, and whether its calls came through.

python -m pegboard_bench.fleet --clients    # as a part of `make bench-fleet`
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from pegboard.settings.server_spec import ServerSpec
from pegboard_bench.coding_agents.agents import AGENTS
from pegboard_bench.coding_agents.conversations import Kept
from pegboard_bench.coding_agents.processes import provider
from pegboard_bench.fleet import sdk_sessions
from pegboard_bench.fleet.agent_clients import Agents, Conversation
from pegboard_bench.fleet.before_fleet import Doors, doors
from pegboard_bench.fleet.needs import TRANSPORTS, Need, Way, needs
from pegboard_bench.fleet.sdk_clients import Driver, drivers

Said = Callable[[str], None]
AGENT_WAYS: tuple[Way, ...] = ("direct", "stdio", "http", "grows", "pushes")


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
    agents: Iterable[str] = tuple(AGENTS),
    ways: Sequence[Way] = AGENT_WAYS,
    board: int = 0,
) -> Found:
    """The conversations of every client by way; ``board``: tokens of all definitions, which SDKs list directly."""
    wanted = needs(places.installed / "repository")
    found: Found = {}
    with provider(places.upstream, places.folder) as behind, doors(specs, config, places.folder) as fleet:
        for driver in drivers(places.installed / "clients", places.scripts):
            found[driver.name] = _of_sdk(driver, fleet, wanted, board, said)
        each = Agents(
            installed=places.installed / "agents", provider=behind, doors=fleet, needs=wanted, kept=places.kept
        )
        for name in agents:
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


def table(found: Found) -> dict[str, Any]:
    return {name: {way: asdict(each) for way, each in ways.items()} for name, ways in found.items()}
