"""Boards of a set's servers, with requests that they can answer and requests whose tools were taken off.

A request has a tool for it if all tools of one of its labels are on the board. It has none if neither they nor any tool
that does the same job (`retrieval.duplicates`) are: that is as far as labels can say.
"""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Mapping, Set
from dataclasses import dataclass

from pegboard.catalog import Catalog
from pegboard.compose import Parts, build_routing
from pegboard.evaluation.datasets import Query, ToolSet
from pegboard.model import ToolId
from pegboard.retrieval.duplicates import duplicate_groups
from pegboard.settings import load_settings

BOARDS = 8
MOST_SERVERS = 40
"""Servers of a board, but never more than half of a set's."""
MOST_ASKED = 25
"""Requests of each kind that one board is asked."""
FOLDS = 5
MOST_OFF = 100
"""Requests whose tools alone are taken off, of a set."""
Same = Mapping[ToolId, Set[ToolId]]


@dataclass(frozen=True, slots=True, kw_only=True)
class AskedBoard:
    """A board, requests that some of its tools fit, and requests that none fits."""

    board: Catalog
    fitting: tuple[str, ...]
    unfitting: tuple[str, ...]


async def same_jobs(catalog: Catalog, parts: Parts) -> Same:
    """For each tool all that do the same job, with itself."""
    routing = build_routing(load_settings(profile="hybrid"), catalog, parts=parts)
    await routing.warm()
    groups: defaultdict[int, set[ToolId]] = defaultdict(set)
    numbers = duplicate_groups(catalog.tools, await routing.vectors()).tolist()
    for tool, number in zip(catalog.tools, numbers, strict=True):
        groups[number].add(tool.id)
    return {tool.id: groups[number] for tool, number in zip(catalog.tools, numbers, strict=True)}


def without_servers(of_set: ToolSet, same: Same, seed: int) -> list[AskedBoard]:
    """Boards of some of the servers. No request is asked twice with its tools there, nor twice without them."""
    draw = random.Random(f"{of_set.name}/{seed}")  # noqa: S311 - a sample, no secret
    most = min(MOST_SERVERS, len(of_set.catalog.servers) // 2)
    done: tuple[set[str], set[str]] = (set(), set())
    boards = []
    for _ in range(BOARDS):
        servers = _drawn(draw, of_set, most)
        board = only(of_set.catalog, {tool.id for tool in of_set.catalog.tools if tool.server in servers})
        queries = draw.sample(of_set.queries, len(of_set.queries))
        fitting = [query.text for query in queries if query.text not in done[0] and fits(query, board)]
        unfitting = [query.text for query in queries if query.text not in done[1] and nothing_fits(query, board, same)]
        asked = [tuple(texts[:MOST_ASKED]) for texts in (fitting, unfitting)]
        boards.append(AskedBoard(board=board, fitting=asked[0], unfitting=asked[1]))
        done[0].update(asked[0])
        done[1].update(asked[1])
    return boards


def without_tools(of_set: ToolSet, same: Same, seed: int) -> list[AskedBoard]:
    """The whole board without the tools of a fifth of the requests; other tools of their servers stay."""
    draw = random.Random(f"{of_set.name}/{seed}")  # noqa: S311 - a sample, no secret
    queries = draw.sample(of_set.queries, min(MOST_OFF, len(of_set.queries)))
    boards = []
    for fold in range(FOLDS):
        mine = queries[fold::FOLDS]
        gone = {other for query in mine for tool in labels(query) for other in same[tool]}
        board = only(of_set.catalog, {tool.id for tool in of_set.catalog.tools} - gone)
        others = [query.text for query in queries if query not in mine and fits(query, board)]
        boards.append(
            AskedBoard(board=board, fitting=tuple(others[: len(mine)]), unfitting=tuple(query.text for query in mine))
        )
    return boards


def _drawn(draw: random.Random, of_set: ToolSet, most: int) -> set[str]:
    """The servers of random requests, until there are enough."""
    servers: set[str] = set()
    for query in draw.sample(of_set.queries, len(of_set.queries)):
        needed = {tool.server for tool in labels(query)}
        if len(servers | needed) <= most:
            servers |= needed
    return servers


def only(catalog: Catalog, kept: Set[ToolId]) -> Catalog:
    """The board of these tools alone."""
    tools = {name: [tool for tool in catalog.of_server(name) if tool.id in kept] for name in catalog.servers}
    return Catalog.build((server, tools[name]) for name, server in catalog.servers.items() if tools[name])


def labels(query: Query) -> set[ToolId]:
    return {*query.relevant, *(tool for group in query.any_of for tool in group)}


def fits(query: Query, board: Catalog) -> bool:
    return all(tool in board for tool in query.relevant) and all(
        any(tool in board for tool in group) for group in query.any_of
    )


def nothing_fits(query: Query, board: Catalog, same: Same) -> bool:
    return not any(other in board for tool in labels(query) for other in same[tool])
