"""Algorithm 1 run: a model that decides, a router that routes, and whoever calls the tools."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, TypeAlias

from pegboard.routing.economics.episode import Decide, Episode, Execute, Route, Stop, episode

Context: TypeAlias = tuple[Any, ...]


async def solve(
    query: str,
    *,
    decide: Callable[[Context], Awaitable[Route | Execute | Stop]],
    route: Callable[[Any], Awaitable[Any]],
    execute: Callable[[Execute], Awaitable[Any]],
    most: int = 32,
) -> Episode:
    """Let a model solve a task with the tools that it asks for, in at most so many steps.

    ``decide`` is the model: it reads the task and what every step gave. ``route`` answers a subtask, as `Board.offers`
    does, and ``execute`` a call; both answer failures as they are, for the model to read. What they raise ends it.
    """
    loop = episode(query, most=most)
    step = next(loop)
    while True:
        match step:
            case Decide():
                answer: Any = await decide(step.context)
            case Route():
                answer = await route(step.subtask)
            case Execute():
                answer = await execute(step)
        try:
            step = loop.send(answer)
        except StopIteration as ended:
            return ended.value  # type: ignore[no-any-return]
