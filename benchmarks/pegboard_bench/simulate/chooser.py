"""The agent of the simulation: how it picks among what it is offered, tries again, asks again, and stops.

The rule, the same for every policy:

1. **It asks** with the text of the task. What it is offered is added to what it was offered before.
2. **It picks** the best by impression, among all that it was offered and has not given up, and "none of these". The
   impression of a tool that reaches a goal which is still open is b + G, of any other tool G, of none b/2 + G, where G
   are Gumbel numbers: Luce's choice rule. Among N tools of which one is right it finds that one with the chance
   1 / (1 + e^(−b/2) + (N − 1)·e^(−b)): 0.88 of 3, 0.69 of 30, 0.13 of 527. b is such that all 527 tools in one prompt
   give what RAG-MCP's authors measured for prompts with all tools (13.62%, arXiv 2505.03275). It looks at neither
   prices nor places in the list. Its impression of a tool stays the same for the whole task; that of none is new each
   time. A tool that costs more than the money left cannot be picked.
3. **It tries again** once, the same tool, where a call failed and the server did not. Otherwise it gives the tool up:
   when it failed twice, when its server failed, when its result did not help, and when it did.
4. **It asks again** where none persuades it, and says what it was offered already, so that it is offered something
   else. Where nothing else comes it looks again at what it has.
5. **It stops** when every goal is reached, which it knows; or when it would ask, call, wait or pay more than its limits
   let it.

A task succeeds when every goal was reached by a successful call before its time was over. A call is invalid that failed
or did not help; a route is invalid of whose tools none helped. Tokens are those of every prompt: what the agent is told
of itself, the task, all definitions that it was offered so far, and all results.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np

from pegboard.model import Mask
from pegboard_bench.simulate.calls import Calls, Happened
from pegboard_bench.simulate.tasks import Goal, Limits, Task
from pegboard_bench.simulate.world import ROUTING, Numbers, Places

DISCERNMENT = math.log(526 / (1 / 0.1362 - 1))
"""b, 4.4: how much better a tool looks that is right."""
AGENT, RESULT = 300, 150
"""Tokens of the agent's instructions with ROUTE and EXECUTE-TOOL, and of a result or an error."""
CHOICES = 2
"""Of the streams of draws in a task, the one of the agent's impressions; that of `Calls` is without a number."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Offer:
    """``places`` are shown to the agent; ``ranking`` is all that the policy ranked, best first. Places in the world."""

    places: Places
    ranking: Places
    routed: bool = True


class Policy(Protocol):
    """Offers tools, knowing texts, posted prices and the outcomes of calls that were made on its advice."""

    def route(self, query: int, left: Mask) -> Offer:
        """Tools for a query by its number, among those ``left``, shape (n,): the agent was not yet offered them."""
        ...

    def observe(self, place: int, happened: Happened) -> None: ...


@dataclass(slots=True, kw_only=True)
class Episode:
    """What became of a task. ``paid`` in USD, ``ranking`` what was ranked first, ``selected`` the tools called.

    ``offered`` is the price of a call of every tool that was offered, in USD: what the paper calls cost.
    """

    goals: int
    reached: int = 0
    seconds: float = 0.0
    paid: float = 0.0
    offered: float = 0.0
    tokens: int = 0
    routes: int = 0
    empty_routes: int = 0
    invalid_routes: int = 0
    invalid_calls: int = 0
    selected: list[int] = field(default_factory=list)
    ranking: Places = field(default_factory=lambda: np.empty(0, np.intp))

    @property
    def success(self) -> bool:
        return self.reached == self.goals


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Setting:
    """``tokens`` of the tools' definitions and their ``price`` (USD) have shape (n,).

    ``seed`` and ``moment`` are what the agent's impressions are drawn from. ``by_place`` is added to the impressions of
    the first, second and further tools of an offer; without it the agent does not look at places.
    """

    limits: Limits
    tokens: Numbers
    price: Numbers
    seed: int
    moment: int
    by_place: tuple[float, ...] = ()


def play(task: Task, policy: Policy, calls: Calls, setting: Setting) -> Episode:
    """One task from beginning to end."""
    return _Agent(task, policy, calls, setting).run()


class _Agent:
    def __init__(self, task: Task, policy: Policy, calls: Calls, setting: Setting) -> None:
        self._draws = np.random.default_rng([setting.seed, setting.moment, CHOICES])
        self._impression = self._draws.gumbel(size=len(setting.price))
        self._task, self._policy, self._calls, self._setting = task, policy, calls, setting
        self._open: list[Goal] = list(task.goals)
        self._right: Mask = np.zeros(len(setting.price), np.bool_)
        self._right[list(frozenset[int]().union(*task.goals))] = True
        self._left: Mask = np.ones(len(setting.price), np.bool_)
        self._held: list[int] = []
        self._failed: set[int] = set()
        self._helped: set[int] = set()
        self._offers: list[frozenset[int]] = []
        self._context = AGENT + task.tokens
        self.found = Episode(goals=len(task.goals))

    def run(self) -> Episode:
        found, limits = self.found, self._setting.limits
        self._ask()
        while self._open and found.seconds < limits.seconds:
            found.tokens += self._context
            place = self._pick()
            if place is not None:
                if len(found.selected) == limits.calls:
                    break
                self._call(place)
            elif found.routes == limits.routes:
                break
            else:
                self._ask()
        found.invalid_routes = sum(not each & self._helped for each in self._offers)
        return found

    def _ask(self) -> None:
        offer = self._policy.route(self._task.number, self._left)
        found, places = self.found, offer.places[self._left[offer.places]].tolist()
        if offer.routed:
            found.tokens += self._context if not found.routes else 0
            found.seconds += ROUTING
            found.empty_routes += not places
            self._offers.append(frozenset(places))
        if not found.routes:
            found.ranking = offer.ranking
        found.routes += 1
        found.offered += float(self._setting.price[places].sum())
        for place, more in zip(places, self._setting.by_place, strict=False):
            self._impression[place] += more
        self._left[places] = False
        self._held += places
        self._context += int(self._setting.tokens[places].sum())

    def _pick(self) -> int | None:
        """The place of the tool that persuades, if any does."""
        none = DISCERNMENT / 2 + self._draws.gumbel()
        held = np.array(self._held, np.intp)
        held = held[self._setting.price[held] <= self._setting.limits.usd - self.found.paid]
        if not len(held):
            return None
        impressions = self._impression[held] + DISCERNMENT * self._right[held]
        best = int(impressions.argmax())
        return int(held[best]) if impressions[best] > none else None

    def _call(self, place: int) -> None:
        happened = self._calls.call(place)
        self._policy.observe(place, happened)
        found = self.found
        found.selected.append(place)
        found.seconds += happened.seconds
        found.paid += happened.price
        self._context += RESULT
        if not self._helps(place, happened):
            found.invalid_calls += 1

    def _helps(self, place: int, happened: Happened) -> bool:
        """Whether the call reached a goal; the tool is given up unless it is to be tried again."""
        if happened.outcome.failure == "tool" and place not in self._failed:
            self._failed.add(place)
            return False
        self._held.remove(place)
        reached = [goal for goal in self._open if place in goal]
        if not happened.outcome.success or not reached or self.found.seconds > self._setting.limits.seconds:
            return False
        self._open = [goal for goal in self._open if place not in goal]
        for goal in reached:
            self._right[list(goal)] = False
        for goal in self._open:
            self._right[list(goal)] = True
        self.found.reached += len(reached)
        self._helped.add(place)
        return True
