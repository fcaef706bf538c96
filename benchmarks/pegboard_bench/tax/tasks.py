"""Tasks, drawn by a procedure: 40% single-step, 30% multi-step, 15% long-horizon, 15% with follow-ups.

A task is a list of steps; in each the model makes one call. A *single-step* task is one request of the user. A
*multi-step* one is a message of two or three requests, a step each. A *long-horizon* one is a session of 15 to 40
steps: messages of one to three requests, seven in ten of them about the server of the message before. One with
*follow-ups* is a request and then two or three elliptical ones ("and in #support?") that need the same tool.

Each step says which tools serve it, and the state of the agent before it. What a tool needs (`needs`) is met when it is
needed; other rights are held or not by the toss of a coin.
"""

from __future__ import annotations

import random
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from pegboard.catalog import Catalog
from pegboard.model import AgentState, ToolId
from pegboard_bench.tax import phrases
from pegboard_bench.tax.phrases import Asks, Same

Kind = Literal["single", "multi", "long", "follow_up"]
SHARES: tuple[tuple[Kind, float], ...] = (("single", 0.4), ("multi", 0.3), ("long", 0.15), ("follow_up", 0.15))
LONG = (15, 40)
STAYS = 0.7
WRITES = re.compile(
    r"(?:^|[_-])(?:add|archive|assign|clear|close|create|delete|drop|edit|insert|link|mark|move|rename|remove|set|type"
    r"|transition|update|write|click|fill)(?:$|[_-])"
)
CONNECTED = "connect"
PAGE_OPEN = "page_open"
UNCONNECTED = frozenset({"connect", "list-connections", "search-knowledge"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """``said`` is what the user says before it; None where the agent goes on by itself. ``ask`` is what this step is
    about, in the user's words. ``serves`` are the tools any of which will do."""

    said: str | None
    ask: str
    serves: frozenset[ToolId]
    state: AgentState


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    kind: Kind
    steps: tuple[Step, ...]


def needs(tool: ToolId) -> tuple[str, ...]:
    """Preconditions of a tool, as configuration writes them (Tool Attention §5.4).

    >>> needs(ToolId("jira", "jira_add_comment"))
    ('is_authenticated:jira:write',)
    """
    found = [f"is_authenticated:{tool.server}:write"] if WRITES.search(tool.name) else []
    if tool.server == "database" and ("-" in tool.name or "_" not in tool.name) and tool.name not in UNCONNECTED:
        found.append(f"has_prior_tool_output:{CONNECTED}")
    if tool.name.startswith("browser_"):
        found.append(f"milestone_reached:{PAGE_OPEN}")
    return tuple(found)


class Drawn:
    """Draws tasks of one testbed: the same ones for the same seed."""

    def __init__(self, catalog: Catalog, asks: Asks, same: Same, seed: str) -> None:
        self._asks = asks
        self._same = same
        self._choose = random.Random(seed)  # noqa: S311
        self._by_server: dict[str, list[ToolId]] = {}
        for tool in catalog.tools:
            if tool.id in asks:
                self._by_server.setdefault(tool.server, []).append(tool.id)
        self._tools = [tool for of in self._by_server.values() for tool in of]

    def tasks(self, count: int) -> tuple[Task, ...]:
        kinds = [kind for kind, share in SHARES for _ in range(round(share * count))]
        return tuple(self._task(kind) for kind in kinds)

    def _task(self, kind: Kind) -> Task:
        held = frozenset(f"{server}:write" for server in self._by_server if self._choose.random() < 0.5)
        idle = frozenset({PAGE_OPEN}) if self._choose.random() < 0.3 else frozenset()
        draw = {"single": self._single, "multi": self._multi, "long": self._long, "follow_up": self._follow_up}[kind]
        wanted = draw()
        tools = [tool for _, _, tool in wanted]
        return Task(kind=kind, steps=tuple(self._step(each, tools, held, idle) for each in wanted))

    def _single(self) -> list[tuple[str | None, str, ToolId]]:
        return self._message([self._choose.choice(self._tools)])

    def _multi(self) -> list[tuple[str | None, str, ToolId]]:
        return self._message(self._choose.sample(self._tools, self._choose.choice((2, 3))))

    def _long(self) -> list[tuple[str | None, str, ToolId]]:
        length, found = self._choose.randint(*LONG), list(self._single())
        while len(found) < length:
            server = found[-1][2].server
            stays = self._choose.random() < STAYS
            among = self._by_server[server] if stays else self._tools
            found += self._message(self._choose.sample(among, min(len(among), self._choose.choice((1, 2, 3)))))
        return found[:length]

    def _follow_up(self) -> list[tuple[str | None, str, ToolId]]:
        tool = self._choose.choice([tool for tool in self._tools if phrases.SLOT.search(self._asks[tool][0])])
        request = self._asks[tool][0]
        first, _ = phrases.filled(request, self._choose)
        found: list[tuple[str | None, str, ToolId]] = [(phrases.message([first], self._choose), first, tool)]
        for _ in range(self._choose.choice((2, 3))):
            varied = phrases.again(request, self._choose)
            if varied is not None:
                found.append((*varied, tool))
        return found

    def _message(self, tools: Sequence[ToolId]) -> list[tuple[str | None, str, ToolId]]:
        asks = [phrases.filled(self._choose.choice(self._asks[tool]), self._choose)[0] for tool in tools]
        said: list[str | None] = [phrases.message(asks, self._choose), *[None] * (len(asks) - 1)]
        return list(zip(said, asks, tools, strict=True))

    def _step(
        self,
        wanted: tuple[str | None, str, ToolId],
        tools: Sequence[ToolId],
        held: frozenset[str],
        idle: frozenset[str],
    ) -> Step:
        said, ask, tool = wanted
        twins = self._same.get(tool, frozenset({tool}))
        auth, outputs, milestones = set(held), set[str](), set(idle)
        for each in {*twins, *tools}:
            for need in needs(each):
                name, _, argument = need.partition(":")
                {"is_authenticated": auth, "has_prior_tool_output": outputs, "milestone_reached": milestones}[name].add(
                    argument
                )
        state = AgentState(auth=frozenset(auth), tool_outputs=frozenset(outputs), milestones=frozenset(milestones))
        return Step(said=said, ask=ask, serves=twins, state=state)
