"""Coding agents before the fleet: one conversation each way, in which the model needs tools of three servers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pegboard.catalog import compact_json
from pegboard_bench.coding_agents.agents import AGENTS
from pegboard_bench.coding_agents.billing import billed, tokens
from pegboard_bench.coding_agents.conversations import Kept
from pegboard_bench.coding_agents.processes import Provider
from pegboard_bench.coding_agents.prompts import Act
from pegboard_bench.coding_agents.request_view import visible
from pegboard_bench.coding_agents.sessions import Place, Session
from pegboard_bench.fleet.before_fleet import Doors
from pegboard_bench.fleet.needs import INVOKE, PEGBOARD, SEARCH, Need, Way

PROMPT = "What time in Tokyo is 16:30 UTC, what was committed of late, and what comes back of an echo?"


@dataclass(frozen=True, slots=True, kw_only=True)
class Conversation:
    """What came of a conversation. ``calls`` and ``done``: calls of tools, and those whose result the model was given
    (behind Pegboard: after a search that had found the tool). ``start``: tokens of its first request, ``tokens``: of
    all; ``billed``: in tokens of plain input, by the provider's rules of prompt caching. ``listed``: definitions that
    the model had in its first request. ``trouble``: what went wrong; empty where nothing did."""

    requests: int
    calls: int
    done: int
    start: int
    tokens: int
    billed: float
    listed: int
    trouble: str

    @property
    def share(self) -> float:
        return self.done / self.calls


@dataclass(frozen=True, slots=True, kw_only=True)
class Agents:
    """``installed``: the folder of `scripts/install_agents.py`."""

    installed: Path
    provider: Provider
    doors: Doors
    needs: Sequence[Need]
    kept: Kept

    def converse(self, name: str, way: Way, folder: Path) -> Conversation:
        session = self.kept.held(f"{name}-{way}", lambda: self._hold(name, way, folder))
        return seen(name, session, self.needs, way)

    def _hold(self, name: str, way: Way, folder: Path) -> Session:
        place = Place(
            agent=AGENTS[name],
            tools=0,
            installed=self.installed,
            folder=folder / name,
            provider=self.provider,
            running=self.doors.servers(way),
        )
        return place.hold(self.provider.url, PROMPT, acts(self.needs, way))


def acts(needs: Sequence[Need], way: Way) -> list[Act]:
    """What the model does: directly it calls each tool, behind Pegboard it searches first.

    Where an agent leaves it to the model to look for tools, it looks for each, or once for Pegboard's.
    """
    if way == "direct":
        each = [(need.word, need.server, need.tool, need.arguments) for need in needs]
        return [
            act
            for word, server, tool, arguments in each
            for act in (
                Act(kind="find", command=word),
                Act(kind="mcp", server=server, tool=tool, arguments=arguments),
            )
        ]
    pairs = [((SEARCH, need.search), (INVOKE, need.invocation)) for need in needs]
    calls = [(tool, arguments) for pair in pairs for tool, arguments in pair]
    looked = Act(kind="find", command=PEGBOARD)
    return [looked, *(Act(kind="mcp", server=PEGBOARD, tool=tool, arguments=of) for tool, of in calls)]


def seen(name: str, session: Session, needs: Sequence[Need], way: Way) -> Conversation:
    """What a conversation says of itself; requests for titles and the like are left out."""
    bodies = [request["body"] for request in session.requests if request["played"]]
    sizes = [tokens(body) for body in bodies]
    done = [need for need in needs if _is_done(need, bodies, way)]
    missing = [f"no answer of {need.tool}" for need in needs if need not in done]
    return Conversation(
        requests=len(bodies),
        calls=len(needs),
        done=len(done),
        start=sizes[0] if sizes else 0,
        tokens=sum(sizes),
        billed=billed(AGENTS[name], [bodies], "apart"),
        listed=_listed(bodies[0]) if bodies else 0,
        trouble="; ".join([*([session.broke] if session.broke else []), *missing]),
    )


def _is_done(need: Need, bodies: Sequence[Mapping[str, Any]], way: Way) -> bool:
    said = compact_json(bodies[-1]) if bodies else ""
    return need.answer in said and (way == "direct" or need.is_found(said))


def _listed(body: Mapping[str, Any]) -> int:
    return len(visible(body))
