"""What the simulation is given: LiveMCPBench's catalog, its tasks, and the routes that a model wrote for them."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np

from pegboard.catalog import Catalog
from pegboard.catalog.tokens import BpeCounter, canonical_text
from pegboard.compose import Parts
from pegboard.errors import CatalogError
from pegboard.evaluation.datasets import Query, read_set
from pegboard.evaluation.progress_bar import bar
from pegboard.evaluation.ranking_metrics import canonical_ids
from pegboard.settings import Settings
from pegboard_bench.simulate.relevance import relevance
from pegboard_bench.simulate.run import Asked
from pegboard_bench.simulate.world import frozen, thawed

FOLDERS: Mapping[str, str] = {"tasks": "livemcp_tasks", "routes": "livemcp_routes"}


def check_frozen(catalog: Catalog) -> None:
    """Raises CatalogError where the worlds over this catalog are not those that were frozen."""
    found, expected = thawed(catalog.tools), frozen()
    if found != expected:
        seed = next(seed for seed in expected if found.get(seed) != expected[seed])
        raise CatalogError(
            f"The world of seed {seed} has the fingerprint {found.get(seed)!r}, and was frozen as {expected[seed]!r}.",
            remedy="Give it LiveMCPBench's catalog (livemcp_tasks); a changed world has to be frozen and run anew.",
        )


async def read(data: Path, settings: Settings, parts: Parts) -> dict[str, Asked]:
    """Both sets, with what is known of each text. A route's task is the one whose id its own begins with."""
    catalog = read_set(data / FOLDERS["tasks"]).catalog
    queries = {name: read_set(data / folder).queries for name, folder in FOLDERS.items()}
    texts = list(dict.fromkeys(query.text for each in queries.values() for query in each))
    with bar("texts") as progress:
        known = await relevance(texts, catalog, settings, parts, progress)
    place = {text: number for number, text in enumerate(texts)}
    counter = BpeCounter()
    of_task = {query.id: query for query in queries["tasks"]}
    return {
        name: Asked(
            tools=catalog.tools,
            canonical=canonical_ids(catalog),
            queries=each,
            tokens=tuple(counter.count([query.text for query in each])),
            tool_tokens=tuple(counter.count([canonical_text(tool) for tool in catalog.tools])),
            relevance=known.of(np.array([place[query.text] for query in each])),
            original=known.of(np.array([place[_task(query, of_task).text] for query in each])),
        )
        for name, each in queries.items()
    }


def _task(query: Query, of_task: Mapping[str, Query]) -> Query:
    """The task that a route belongs to; a route whose task has no labels stands for itself."""
    return of_task.get(query.id.partition("#")[0], query)
