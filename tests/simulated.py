"""A small world to simulate in: twelve servers of four tools each, and six tasks that need two of them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from pegboard.evaluation.datasets import Query
from pegboard.model import Tool, ToolId
from pegboard_bench.simulate.relevance import Relevance
from pegboard_bench.simulate.run import Asked

TOOLS = tuple(
    Tool(id=ToolId(f"server{place // 4}", f"tool{place}"), description="Searches the web" if place % 5 == 0 else "Adds")
    for place in range(48)
)
SERVERS = 12
CANONICAL = {tool.id: place for place, tool in enumerate(TOOLS)}
QUERIES = tuple(
    Query(
        id=f"task{number}",
        text=f"task {number}",
        relevant=(TOOLS[4 * number].id, TOOLS[(4 * number + 17) % 48].id),
        category="Office" if number % 4 else "Travel",
    )
    for number in range(0, SERVERS, 2)
)


def relevance(queries: tuple[Query, ...] = QUERIES, *, seed: int = 1) -> Relevance:
    """Fitting tools are somewhat more similar than others."""
    random = np.random.default_rng(seed)
    tools = random.uniform(0.1, 0.5, (len(queries), len(TOOLS)))
    servers = random.uniform(0.1, 0.4, (len(queries), SERVERS))
    for row, query in enumerate(queries):
        for tool in query.relevant:
            tools[row, CANONICAL[tool]] += 0.3
            servers[row, CANONICAL[tool] // 4] += 0.2
    return Relevance(servers=servers, tools=tools, hybrid=tools / tools.sum(axis=1, keepdims=True))


def asked() -> Asked:
    """Tasks, each of which is its own."""
    known = relevance()
    return Asked(
        tools=TOOLS,
        canonical=CANONICAL,
        queries=QUERIES,
        tokens=(20,) * len(QUERIES),
        tool_tokens=(100,) * len(TOOLS),
        relevance=known,
        original=known,
    )


def routes() -> Asked:
    """The same requests as parts of tasks that read otherwise."""
    return replace(asked(), original=relevance(seed=2))
