"""An agent through everything that it is asked, directly and through the gateway, and what came of it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, get_args

from pegboard.bench.coding_agents.agents import Agent
from pegboard.bench.coding_agents.atlassian import is_one
from pegboard.bench.coding_agents.billing import Rhythm, billed, tokens
from pegboard.bench.coding_agents.doors import gateway
from pegboard.bench.coding_agents.prompts import LOOK, WHOLE, WITH_MCP, Task
from pegboard.bench.coding_agents.reading import visible
from pegboard.bench.coding_agents.sessions import Place, Session

Side = Literal["direct", "gateway"]
Said = Callable[[str], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """All conversations of an agent on one side: one for each prompt, one for each task."""

    prompts: Sequence[Session]
    tasks: Mapping[str, Session]

    @property
    def sessions(self) -> list[Session]:
        return [*self.prompts, *self.tasks.values()]

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

    def failed(self) -> dict[str, str]:
        """Tasks that succeed directly only, and what of them was not done."""
        each = {name: (self.direct.tasks[name], self.gateway.tasks[name]) for name in self.direct.tasks}
        found = {
            name: through.did(TASKS[name]) for name, (direct, through) in each.items() if not direct.did(TASKS[name])
        }
        return {name: why for name, why in found.items() if why}

    def broken(self) -> dict[str, str]:
        """What went wrong directly: then nothing is said of the gateway."""
        found = {session.prompt: session.broke for session in self.direct.prompts}
        found |= {name: session.did(TASKS[name]) for name, session in self.direct.tasks.items()}
        return {name: why for name, why in found.items() if why}

    def over_direct(self, rhythm: Rhythm) -> float:
        ours, theirs = (billed(self.agent, run.bodies, rhythm) for run in (self.gateway, self.direct))
        return ours / theirs

    def line(self) -> dict[str, Any]:
        """What a table has of it."""
        sides = {"direct": self.direct, "gateway": self.gateway}
        return {
            "lost": self.lost(),
            "failed": self.failed(),
            "broken": self.broken(),
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


def measure(place: Place, prompts: Sequence[str], folder: Path, said: Said) -> Case:
    """First directly, then through a gateway that has seen nothing yet; ``said`` is told of each conversation."""
    direct = _run(place, place.provider.url, prompts, lambda text: said(f"direct: {text}"))
    with gateway(place.provider.url, place.agent.format, folder) as url:
        through = _run(place, url, prompts, lambda text: said(f"gateway: {text}"))
    return Case(agent=place.agent, count=place.tools, direct=direct, gateway=through)


def _run(place: Place, url: str, prompts: Sequence[str], said: Said) -> Run:
    asked, tasks = [], {}
    for prompt in prompts:
        session = place.hold(url, prompt, LOOK)
        said(f"{prompt!r}, {session.seconds:.1f} s {session.broke}")
        asked.append(session)
    for task in tasks_of(place.tools):
        session = place.hold(url, task.prompt, task.acts)
        said(f"task {task.name}, {session.seconds:.1f} s {session.did(task)}")
        tasks[task.name] = session
    return Run(prompts=asked, tasks=tasks)


def missing(direct: Session, through: Session) -> list[str]:
    """Own tools that some request of the conversation lacks through the gateway; all of them where there is none."""
    own = {name for names in _played(direct) for name in names if not is_one(name)}
    each = _played(through) or [frozenset[str]()]
    return sorted({name for names in each for name in own - names})


def _played(session: Session) -> list[frozenset[str]]:
    return [visible(request["body"]) for request in session.requests if request["played"]]


def _offered(run: Run) -> list[frozenset[str]]:
    return [names for session in run.sessions for names in _played(session)]
