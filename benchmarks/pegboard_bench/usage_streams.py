"""Streams of recorded turns: requests of a tool-retrieval set with the tools that they led to, in an order of time."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from pegboard.evaluation.datasets import Query, ToolSet
from pegboard.model import ToolId

MOST = 2_000
"""Turns of a stream."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Stream:
    """Turns in the order of time; ``changes`` is the place at which the habits change, if they do."""

    name: str
    turns: tuple[Query, ...]
    changes: int | None = None


def steady(dataset: ToolSet, seed: int) -> Stream:
    """All turns in random order: one user whose habits stay the same."""
    order = np.random.default_rng(seed).permutation(len(dataset.queries))[:MOST]
    return Stream(name="steady", turns=tuple(dataset.queries[place] for place in order))


def changing(dataset: ToolSet, seed: int) -> Stream:
    """The turns of one half of the tools, then those of the other half: nothing that was learnt first is of use."""
    random = np.random.default_rng(seed)
    tools = sorted(_used(dataset.queries))
    random.shuffle(tools)
    first = frozenset(tools[: len(tools) // 2])
    halves = [[query for query in dataset.queries if (_tools(query)[0] in first) is early] for early in (True, False)]
    taken = [
        [half[place] for place in random.permutation(len(half))[: MOST // 2 if len(dataset.queries) >= MOST else None]]
        for half in halves
    ]
    return Stream(name="changing", turns=(*taken[0], *taken[1]), changes=len(taken[0]))


def reversing(dataset: ToolSet, seed: int) -> Stream:
    """From the middle on, the requests for one tool of a pair led to the other one: what was learnt first is wrong.

    Tools are paired by how often they are called, so that both are about as frequent.
    """
    whole = steady(dataset, seed).turns
    often = [tool for tool, _ in sorted(_used(whole).items(), key=lambda item: (-item[1], item[0]))]
    other = {tool: often[place ^ 1] for place, tool in enumerate(often) if place ^ 1 < len(often)}
    middle = len(whole) // 2
    later = [
        Query(id=query.id, text=query.text, relevant=tuple(other.get(tool, tool) for tool in _tools(query)))
        for query in whole[middle:]
    ]
    return Stream(name="reversing", turns=(*whole[:middle], *later), changes=middle)


def called(query: Query) -> tuple[ToolId, ...]:
    """The tools that a turn led to: one of each group."""
    return tuple(dict.fromkeys(_tools(query)))


def _tools(query: Query) -> Sequence[ToolId]:
    return [*query.relevant, *(group[0] for group in query.any_of if not set(group) & set(query.relevant))]


def _used(queries: Sequence[Query]) -> Counter[ToolId]:
    return Counter(tool for query in queries for tool in _tools(query))
