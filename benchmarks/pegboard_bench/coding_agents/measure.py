"""An agent through everything that it is asked, directly and through the gateway, and what came of it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, get_args

from pegboard.errors import ConfigError
from pegboard_bench.coding_agents.agents import Agent
from pegboard_bench.coding_agents.atlassian import is_one
from pegboard_bench.coding_agents.billing import Rhythm, billed, tokens
from pegboard_bench.coding_agents.conversations import Kept
from pegboard_bench.coding_agents.processes import gateway
from pegboard_bench.coding_agents.prompts import LOOK, WHOLE, WITH_MCP, Act, Task
from pegboard_bench.coding_agents.request_view import visible, without_servers
from pegboard_bench.coding_agents.sessions import Place, Session

Side = Literal["direct", "gateway"]
SIDES: tuple[Side, ...] = get_args(Side)
Said = Callable[[str], None]
BEFORE = 3
"""Prompts before the tasks."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """All conversations of an agent on one side: one for each prompt, one for each task."""

    prompts: Sequence[Session]
    tasks: Mapping[str, Session]

    @property
    def sessions(self) -> list[Session]:
        """In the order in which they were held."""
        return [*self.prompts[:BEFORE], *self.tasks.values(), *self.prompts[BEFORE:]]

    @property
    def bodies(self) -> list[list[Mapping[str, Any]]]:
        return [[request["body"] for request in session.requests] for session in self.sessions]


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """``count``: of the MCP tools that the agent was given."""

    agent: Agent
    count: int
    direct: Run
    gateway: Run

    def lost(self) -> dict[str, list[str]]:
        """The tools of its own that an agent had directly and not through the gateway, by prompt."""
        both = zip(self.direct.prompts, self.gateway.prompts, strict=True)
        found = {direct.prompt: missing(direct, through) for direct, through in both}
        return {prompt: names for prompt, names in found.items() if names}

    @property
    def refused(self) -> str:
        """Why the provider takes no request of the agent's with so many tools directly; empty if it takes any.

        There is nothing to compare then, and through the gateway all has to succeed.
        """
        each = [session.refused for session in self.direct.sessions]
        return each[0][0] if all(each) else ""

    def failed(self) -> dict[str, str]:
        """Tasks that succeed directly only, or are refused there, and what of them was not done."""
        each = {name: (self.direct.tasks[name], self.gateway.tasks[name]) for name in self.direct.tasks}
        found = {
            name: through.did(TASKS[name])
            for name, (direct, through) in each.items()
            if self.refused or not direct.did(TASKS[name])
        }
        return {name: why for name, why in found.items() if why}

    def broken(self) -> dict[str, str]:
        """What went wrong directly, if some did not: then nothing is said of the gateway."""
        if self.refused:
            return {}
        found = {session.prompt: session.broke for session in self.direct.prompts}
        found |= {name: session.did(TASKS[name]) for name, session in self.direct.tasks.items()}
        return {name: why for name, why in found.items() if why}

    def over_direct(self, rhythm: Rhythm) -> float:
        ours, theirs = (billed(self.agent, run.bodies, rhythm) for run in (self.gateway, self.direct))
        return ours / theirs

    def definitions_share(self) -> float:
        """The share of the direct bill that nobody could have saved more than: that of MCP tools' definitions, of
        conversations that are apart."""
        bodies = self.direct.bodies
        without = [[without_servers(body) for body in each] for each in bodies]
        return 1 - billed(self.agent, without, "apart") / billed(self.agent, bodies, "apart")

    def searches_a_task(self) -> float:
        """Requests a task that only the gateway makes: a search for a tool, or a call that was not valid, answered by
        it."""
        ours, theirs = (sum(len(each.requests) for each in run.tasks.values()) for run in (self.gateway, self.direct))
        return max(ours - theirs, 0) / len(self.direct.tasks)

    def line(self) -> dict[str, Any]:
        """What a table has of it."""
        sides = {"direct": self.direct, "gateway": self.gateway}
        return {
            "prompts": len(self.direct.prompts),
            "lost": self.lost(),
            "failed": self.failed(),
            "broken": self.broken(),
            "refused": self.refused,
            "requests": {side: sum(map(len, run.bodies)) for side, run in sides.items()},
            "tokens": {side: sum(tokens(body) for each in run.bodies for body in each) for side, run in sides.items()},
            "billed": {
                rhythm: {side: round(billed(self.agent, run.bodies, rhythm)) for side, run in sides.items()}
                for rhythm in get_args(Rhythm)
            },
            "tools": {side: sorted({len(names) for names in _offered(run)}) for side, run in sides.items()},
        }


TASKS: Mapping[str, Task] = {task.name: task for task in (WHOLE, WITH_MCP)}


def tasks_of(count: int) -> Sequence[Task]:
    return (WHOLE, WITH_MCP) if count else (WHOLE,)


def measure(place: Place, prompts: Sequence[str], folder: Path, said: Said, kept: Kept) -> Case:
    """First directly, then through a gateway that has seen nothing yet; ``said`` is told of each conversation."""
    runs: dict[Side, Run] = {"direct": _run(place, place.provider.url, prompts, "direct", said, kept)}
    with gateway(place.provider.url, place.agent.format, folder) as url:
        runs["gateway"] = _run(place, url, prompts, "gateway", said, kept)
    return Case(agent=place.agent, count=place.tools, direct=runs["direct"], gateway=runs["gateway"])


def _run(place: Place, url: str, prompts: Sequence[str], side: Side, said: Said, kept: Kept) -> Run:
    """The tasks come after some of the prompts: what the gateway has learnt by then is in force."""

    def held(name: str, prompt: str, acts: Sequence[Act]) -> Session:
        kept_as = _kept_as(place.agent, place.tools, side, name)
        found = kept.held(kept_as, lambda: place.hold(url, prompt, acts))
        said(f"{side}: {prompt!r}, {found.seconds:.1f} s {found.broke}")
        return found

    asked = [held(_numbered(number), prompt, LOOK) for number, prompt in enumerate(prompts[:BEFORE])]
    tasks = {task.name: held(task.name, task.prompt, task.acts) for task in tasks_of(place.tools)}
    asked += [held(_numbered(number), prompt, LOOK) for number, prompt in enumerate(prompts[BEFORE:], BEFORE)]
    return Run(prompts=asked, tasks=tasks)


def of_kept(agent: Agent, count: int, prompts: int, kept: Kept) -> Case:
    """What was kept of an agent: all its tasks, and those of the first so many prompts that were held on both sides.

    Raises ConfigError where a task is missing.
    """

    def both(name: str) -> dict[Side, Session]:
        found = {side: kept.read(_kept_as(agent, count, side, name)) for side in SIDES}
        return {side: session for side, session in found.items() if session is not None}

    asked = [each for number in range(prompts) if len(each := both(_numbered(number))) == len(SIDES)]
    tasks = {task.name: both(task.name) for task in tasks_of(count)}
    for name, sides in tasks.items():
        if len(sides) < len(SIDES):
            raise ConfigError(
                f"Task {name} of {agent.title} with {count} MCP tools is not kept on both sides",
                remedy="Run it with --resume.",
            )
    runs = {
        side: Run(prompts=[each[side] for each in asked], tasks={name: sides[side] for name, sides in tasks.items()})
        for side in SIDES
    }
    return Case(agent=agent, count=count, direct=runs["direct"], gateway=runs["gateway"])


def _kept_as(agent: Agent, count: int, side: Side, name: str) -> str:
    return f"{agent.name}-{count}-{side}-{name}"


def _numbered(number: int) -> str:
    return f"{number:02}"


def missing(direct: Session, through: Session) -> list[str]:
    """Own tools that some request of the conversation lacks through the gateway; all of them where there is none."""
    own = {name for names in _played(direct) for name in names if not is_one(name)}
    each = _played(through) or [frozenset[str]()]
    return sorted({name for names in each for name in own - names})


def _played(session: Session) -> list[frozenset[str]]:
    return [visible(request["body"]) for request in session.requests if request["played"]]


def _offered(run: Run) -> list[frozenset[str]]:
    return [names for session in run.sessions for names in _played(session)]
