"""EHRR algorithm 1 with no I/O: it says what to do next and is told what came of it.

The model decides, the router routes, the tools are called and the statistics learn outside; in here is the order.
"""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass
from typing import Any, TypeAlias

from pegboard.model import JsonObject, ToolId


@dataclass(frozen=True, slots=True, kw_only=True)
class Route:
    """d_e = ROUTE, with the functional subtask q_s that the model wrote; answered by candidates and metadata."""

    subtask: Any


@dataclass(frozen=True, slots=True, kw_only=True)
class Execute:
    """d_e = EXECUTE; answered by the call's result, or its failure as it came. Whoever calls updates the statistics."""

    tool: ToolId
    arguments: JsonObject


@dataclass(frozen=True, slots=True, kw_only=True)
class Stop:
    """d_e = STOP, with the final answer R(q)."""

    answer: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Decide:
    """The model is to read the context C_e and decide; answered by `Route`, `Execute` or `Stop`."""

    context: tuple[Any, ...]


Step: TypeAlias = Decide | Route | Execute


@dataclass(frozen=True, slots=True, kw_only=True)
class Episode:
    """How an episode ended. ``answer`` is None where the steps ran out before the model stopped."""

    answer: str | None
    context: tuple[Any, ...]
    steps: int


def episode(query: Any, *, most: int = 32) -> Generator[Step, Any, Episode]:
    """Algorithm 1: yields what is to be done, takes what came of it, and returns the end.

    The context is the query, then one entry a step: what ROUTE returned or what the call gave. The seed's loop ends
    when the model says so; this one also after ``most`` steps.

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
