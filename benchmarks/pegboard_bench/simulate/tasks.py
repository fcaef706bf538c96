"""What is asked in the simulation: labelled requests as goals in a world, and what may be spent on them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from pegboard.evaluation import ranking_metrics
from pegboard.evaluation.datasets import Query
from pegboard.evaluation.ranking_metrics import Canonical
from pegboard_bench.simulate.world import Places, World

Goal = frozenset[int]
"""Places in the world, a successful call of any one of which reaches the goal."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """``number`` is its place among the queries that relevance is known of, ``tokens`` those of its text."""

    number: int
    category: str
    goals: tuple[Goal, ...]
    tokens: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """What an agent may spend on a task: prompts in which it may ask for tools, calls, seconds, US dollars."""

    routes: int
    calls: int
    seconds: float
    usd: float


TASK = Limits(routes=5, calls=10, seconds=60.0, usd=0.15)
"""Of a user's task, which needs 2.7 tools in the mean."""
SUBTASK = Limits(routes=2, calls=4, seconds=20.0, usd=0.05)
"""Of a step that a model asks tools for."""


def tasks(queries: Sequence[Query], tokens: Sequence[int], canonical: Canonical, world: World) -> list[Task]:
    """Copies of a tool reach its goal, on the servers of the catalog and on those that the world adds."""
    places: dict[int, list[int]] = {}
    for place, number in enumerate(numbers(canonical, world)):
        places.setdefault(int(number), []).append(place)
    return [
        Task(
            number=number,
            category=query.category,
            goals=tuple(
                frozenset(place for tool in goal for place in places[tool])
                for goal in sorted(ranking_metrics.goals(query.relevant, query.any_of, canonical), key=sorted)
            ),
            tokens=each,
        )
        for number, (query, each) in enumerate(zip(queries, tokens, strict=True))
    ]


def numbers(canonical: Canonical, world: World) -> Places:
    """The canonical id of each tool of the world, shape (n,). ``canonical`` has the catalog's tools in its order."""
    return np.fromiter(canonical.values(), np.intp, len(canonical))[world.origin]
