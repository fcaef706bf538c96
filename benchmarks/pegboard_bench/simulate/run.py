"""Every policy on the same tasks in the same world, one after the other, learning as it goes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from pegboard.evaluation import ranking_metrics
from pegboard.evaluation.datasets import Query
from pegboard.evaluation.ranking_metrics import Canonical
from pegboard.model import Tool
from pegboard_bench.simulate.calls import Calls, Chance
from pegboard_bench.simulate.chooser import Episode, Policy, Setting, play
from pegboard_bench.simulate.policies import POLICIES, TABLE_V, Known
from pegboard_bench.simulate.relevance import Relevance
from pegboard_bench.simulate.tasks import SUBTASK, TASK, Limits, Task, numbers, tasks
from pegboard_bench.simulate.world import Numbers, World, draw

SETS: Mapping[str, Limits] = {"tasks": TASK, "routes": SUBTASK}
"""What is asked, and what may be spent on each."""
MEASURES = (
    "success",
    "reached",
    "tokens",
    "cost_usd",
    "seconds",
    "routes",
    "calls",
    "invalid_routes",
    "empty_routes",
    "invalid_calls",
    "utility",
    "mrr",
    "recall@3",
)
"""Of an episode. ``utility`` is the sum over all calls of eq. 7 with the world's true values."""
APART = 10_000
"""Between the moments of a pass and those of the next."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Cell:
    """A place in the grid. In each pass all tasks come once, in an order of their own; what was learnt stays."""

    asked: str
    heterogeneity: float = 1.0
    copies: int = 1
    passes: int = 1


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Asked:
    """A set of requests with what is known of their texts; ``original`` of the tasks that they are part of."""

    tools: tuple[Tool, ...]
    canonical: Canonical
    queries: tuple[Query, ...]
    tokens: tuple[int, ...]
    tool_tokens: tuple[int, ...]
    relevance: Relevance
    original: Relevance


Played = dict[str, Numbers]
"""By policy, shape (passes, tasks, measures); as `order`, shape (passes, tasks), the places of tasks as they came."""


def run(cell: Cell, asked: Asked, seed: int) -> Played:
    """All policies in the world of a seed."""
    world = draw(asked.tools, seed, cell.heterogeneity, cell.copies)
    wanted = tasks(asked.queries, asked.tokens, asked.canonical, world)
    known = known_of(asked, world)
    order = np.array([np.random.default_rng([seed, number]).permutation(len(wanted)) for number in range(cell.passes)])
    judge = Judge(world, known, asked.canonical)
    made = {name: policy(known) for name, policy in policies(asked).items()}
    found: Played = {name: np.zeros((*order.shape, len(MEASURES))) for name in made}
    for turn, places in enumerate(order):
        for place in places:
            moment = turn * APART + int(place)
            chance = Chance.of(world, seed, moment)
            setting = Setting(
                limits=SETS[cell.asked], tokens=known.tokens, price=known.prices, seed=seed, moment=moment
            )
            for name, policy in made.items():
                episode = play(wanted[place], policy, Calls(world, chance), setting)
                found[name][turn, place] = judge.measures(wanted[place], episode)
    return {"order": order.astype(np.float64)} | found


def policies(asked: Asked) -> dict[str, Callable[[Known], Policy]]:
    """Those that can be told apart: where each request is its own task, its text is the task's."""
    same = np.array_equal(asked.relevance.tools, asked.original.tools)
    return {name: policy for name, policy in POLICIES.items() if not (same and name == "rag_mcp_task_text")}


def known_of(asked: Asked, world: World) -> Known:
    """What policies may know of what is asked, in a world."""
    of = np.bincount(world.server_of, world.price) / np.bincount(world.server_of)
    return Known(
        relevance=asked.relevance.within(world),
        original=asked.original.within(world),
        server_of=world.server_of,
        prices=world.price,
        asks=of,
        tokens=np.array(asked.tool_tokens, np.float64)[world.origin],
    )


class Judge:
    """Turns episodes into measures; it knows the world."""

    def __init__(self, world: World, known: Known, canonical: Canonical) -> None:
        self._canonical = numbers(canonical, world)
        self._cost = world.cost(TABLE_V.tool_weight, TABLE_V.seconds_per_usd)
        self._known = known

    def measures(self, task: Task, episode: Episode) -> list[float]:
        """In the order of `MEASURES`."""
        selected = np.array(episode.selected, np.intp)
        fitting = self._known.relevance.tools[task.number, selected]
        wanted = frozenset(frozenset(int(self._canonical[place]) for place in goal) for goal in task.goals)
        places = ranking_metrics.places(wanted, self._canonical[episode.ranking].tolist())
        return [
            float(episode.success),
            episode.reached / episode.goals,
            episode.tokens,
            episode.paid,
            episode.seconds,
            episode.routes,
            len(selected),
            episode.invalid_routes,
            episode.empty_routes,
            episode.invalid_calls,
            float((fitting - self._cost[selected]).sum()),
            ranking_metrics.reciprocal_rank(places),
            ranking_metrics.recall(places, len(wanted), 3),
        ]
