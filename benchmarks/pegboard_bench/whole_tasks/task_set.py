"""What is played: tasks, the servers they are done with, and what the model is told before."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from pegboard.settings.server_spec import ServerSpec
from pegboard_bench.whole_tasks.task import Task
from pegboard_bench.whole_tasks.workspace import Workspace


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskSet:
    """``tasks`` gets the places that requests and arguments name (`root`, `pages`), ``system`` has `{root}` for one."""

    tasks: Callable[[Mapping[str, str]], Sequence[Task]]
    servers: Callable[[Workspace], Mapping[str, ServerSpec]]
    system: str
