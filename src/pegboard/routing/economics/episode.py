"""EHRR algorithm 1: the steps of an episode without I/O, and the loop that runs them."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Generator
from dataclasses import dataclass
from typing import Any, TypeAlias

from pegboard.model import JsonObject, ToolId

Context: TypeAlias = tuple[Any, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Route:
    """d_e = ROUTE, with the functional subtask q_s that the model wrote; answered with candidates and metadata."""

    subtask: Any


@dataclass(frozen=True, slots=True, kw_only=True)
class Execute:
    """d_e = EXECUTE; answered with the call's result or unchanged failure. The caller updates the statistics."""

    tool: ToolId
    arguments: JsonObject


@dataclass(frozen=True, slots=True, kw_only=True)
class Stop:
    """d_e = STOP, with the final answer R(q)."""

    answer: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Decide:
    """The model reads the context C_e and decides; answered with `Route`, `Execute` or `Stop`."""

    context: tuple[Any, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Episode:
    """How an episode ended. ``answer`` is None if the steps ran out before the model stopped."""

    answer: str | None
    context: tuple[Any, ...]
    steps: int


Step: TypeAlias = Decide | Route | Execute


def episode(query: Any, *, most: int = 32) -> Generator[Step, Any, Episode]:
    """Algorithm 1 as a generator: yields the next step, receives its result, and returns the end.

    The context is the query, then the result of each step: of ROUTE or of the call. The paper's loop ends when the
    model stops; this one also ends after ``most`` steps.

    >>> loop = episode("what time is it?")
    >>> next(loop)
    Decide(context=('what time is it?',))
    >>> loop.send(Route(subtask="read the clock"))
    Route(subtask='read the clock')
    >>> loop.send(["clock/now"])
    Decide(context=('what time is it?', ['clock/now']))
    """
    context: tuple[Any, ...] = (query,)
    for step in range(most):
        decision = yield Decide(context=context)
        if isinstance(decision, Stop):
            return Episode(answer=decision.answer, context=context, steps=step)
        context = (*context, (yield decision))
    return Episode(answer=None, context=context, steps=most)


async def solve(
    query: str,
    *,
    decide: Callable[[Context], Awaitable[Route | Execute | Stop]],
    route: Callable[[Any], Awaitable[Any]],
    execute: Callable[[Execute], Awaitable[Any]],
    most: int = 32,
) -> Episode:
    """Let a model solve a task with the tools it asks for, in at most ``most`` steps.

    ``decide`` is the model: it reads the task and the results of all steps. ``route`` answers a subtask, as
    `Board.offers` does, and ``execute`` a call; both return failures unchanged, for the model to read. An exception
    ends the episode.
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
