"""How well texts and tools fit, asked of the shipped encoder and the shipped ranking once a text."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from pegboard.catalog import Catalog
from pegboard.compose import Parts, build_routing
from pegboard.model import Floats
from pegboard.retrieval import Progress, Retriever
from pegboard.routing.economics import similarity
from pegboard.settings import Settings
from pegboard_bench.simulate.world import Numbers, Places, World

HYBRID = "hybrid"
DIGITS = 6
"""Beyond these, products of matrices depend on the machine."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Relevance:
    """Of q texts: Sim with the profiles of s servers and with "name: description" of n tools (EHRR eq. 1), shapes
    (q, s) and (q, n), and `hybrid`'s probability that a tool is relevant, shape (q, n).
    """

    servers: Numbers
    tools: Numbers
    hybrid: Numbers

    def of(self, rows: Places) -> Relevance:
        """Of these texts."""
        return Relevance(servers=self.servers[rows], tools=self.tools[rows], hybrid=self.hybrid[rows])

    def within(self, world: World) -> Relevance:
        """Of the servers and tools of a world: a copy fits as well as what it copies."""
        originals = np.arange(len(world.servers)) % self.servers.shape[1]
        return Relevance(
            servers=self.servers[:, originals],
            tools=self.tools[:, world.origin],
            hybrid=self.hybrid[:, world.origin],
        )


async def relevance(
    texts: Sequence[str], catalog: Catalog, settings: Settings, parts: Parts, progress: Progress | None = None
) -> Relevance:
    """In the catalog's order, of servers that have tools."""
    board = build_routing(settings.model_copy(update={"profile": HYBRID}), catalog, parts=parts)
    await board.warm()
    retriever = Retriever(catalog.tools, catalog.servers, documents=parts.encoder, queries=parts.encoder)
    tools, profiles = await retriever.dense("definition"), await retriever.server_vectors()
    names = list(catalog.servers)
    servers = profiles[[names.index(name) for name in dict.fromkeys(tool.server for tool in catalog.tools)]]
    found: list[tuple[Floats, Floats, Floats]] = []
    for text in texts:
        vector, scores = await retriever.embed_query(text), await board.scores(text)
        hybrid = np.zeros(len(catalog), np.float32) if scores is None else scores.values
        found.append((np.asarray(servers @ vector), tools.similarities(vector), hybrid))
        if progress is not None:
            progress(len(found), len(texts))
    of_servers, of_tools, of_hybrid = (np.array(each, np.float64).round(DIGITS) for each in zip(*found, strict=True))
    return Relevance(servers=similarity(of_servers), tools=similarity(of_tools), hybrid=of_hybrid)
