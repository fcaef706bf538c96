"""The ranking methods that are compared: each ranks the tools of one catalog for a text."""

from __future__ import annotations

import json
import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from importlib.resources import files
from importlib.util import find_spec
from typing import Any

import numpy as np

from pegboard.catalog import Catalog
from pegboard.compose import Parts, build_routing
from pegboard.model import Decision, Floats, ToolId
from pegboard.retrieval import CachedEncoder, Progress, Retriever
from pegboard.retrieval.fusion import Fusion
from pegboard.retrieval.index.exact import ExactIndex
from pegboard.retrieval.intents import clauses
from pegboard.retrieval.lexical import Bm25f
from pegboard.retrieval.rankers import HybridRanker
from pegboard.retrieval.tool_texts import fields, name_and_description
from pegboard.routing.select import best_first
from pegboard.routing_board import RoutingBoard
from pegboard.settings import Settings

Search = Callable[[str], Awaitable[Sequence[ToolId]]]

UNGATED: Mapping[str, str] = {"attention_ungated": "attention", "hybrid": "hybrid"}
"""Method to profile: only the profile's scores, without threshold, k or budget."""

GATED = ("attention", "semantic", "keyword")
"""Profiles with their threshold, k and budget."""

ABLATIONS = "ablations.json"
"""Part name to the fusion that `scripts/fit_fusion.py` fitted without that part."""


async def searches(catalog: Catalog, settings: Settings, parts: Parts) -> dict[str, Search]:
    """Every method over one catalog, with its indexes built."""
    found: dict[str, Search] = {"bm25f": bm25(catalog)}
    if find_spec("bm25s"):
        found["bm25"] = bm25s(catalog)
    for method, profile in UNGATED.items():
        found[method] = ungated(await _board(catalog, profile, settings, parts))
    for profile in GATED:
        found[profile] = gated(await _board(catalog, profile, settings, parts))
    return found | await ablations(catalog, settings, parts)


async def ablations(catalog: Catalog, settings: Settings, parts: Parts) -> dict[str, Search]:
    """`hybrid` without each of its parts, refitted; and with one text per tool, not refitted."""
    board = await _board(catalog, "hybrid", settings, parts)
    found = {f"hybrid_without_{part}": by_fusion(board, fusion) for part, fusion in fusions_without().items()}
    documents = CachedEncoder(parts.encoder, parts.embeddings)
    retriever = OneText(catalog.tools, catalog.servers, documents=documents, queries=documents)
    one_text = HybridRanker(retriever)
    await one_text.warm()

    async def search(text: str) -> list[ToolId]:
        return best(catalog, (await one_text.score(text)).values)

    return found | {"hybrid_with_one_text": search}


def fusions_without() -> dict[str, Fusion]:
    fitted = json.loads((files(__package__) / ABLATIONS).read_text("utf-8"))
    return {part: Fusion.of(fusion) for part, fusion in fitted.items()}


def by_fusion(board: RoutingBoard, fusion: Fusion) -> Search:
    """Rank by the board's score parts with another fusion."""

    async def search(text: str) -> list[ToolId]:
        scores = await board.scores(text)
        if scores is None:
            return []
        parts = {part: scores.parts[part] for part in fusion.weights if part in scores.parts}
        return best(board.catalog, fusion.fuse(parts, clauses=len(clauses(text))).values)

    return search


class OneText(Retriever):
    """Embeds each tool as the gateway article does: by name and description."""

    async def meanings(self, progress: Progress | None = None) -> ExactIndex:
        return await self.dense("definition", progress)


async def _board(catalog: Catalog, profile: str, settings: Settings, parts: Parts) -> RoutingBoard:
    board = build_routing(settings.model_copy(update={"profile": profile}), catalog, parts=parts)
    await board.warm()
    return board


def ungated(board: RoutingBoard) -> Search:
    async def search(text: str) -> list[ToolId]:
        return [candidate.tool for candidate in await board.rank(text)]

    return search


def gated(board: RoutingBoard) -> Search:
    async def search(text: str) -> list[ToolId]:
        return chosen(await board.route(text))

    return search


def chosen(decision: Decision) -> list[ToolId]:
    """The active tools, best first."""
    active = set(decision.active)
    ranked = [candidate.tool for candidate in decision.candidates if candidate.tool in active]
    return ranked + [tool for tool in decision.active if tool not in set(ranked)]


def bm25(catalog: Catalog) -> Search:
    """Pegboard's BM25F alone."""
    index = Bm25f([fields(tool, catalog.servers.get(tool.server)) for tool in catalog.tools])
    return _by_scores(catalog, index.scores)


def bm25s(catalog: Catalog) -> Search:
    """The bm25s package with its defaults, on name and description: an independent BM25."""
    import bm25s as package

    logging.getLogger("bm25s").setLevel(logging.WARNING)  # it sets DEBUG itself
    index: Any = package.BM25()
    index.index(_tokens(package, [name_and_description(tool) for tool in catalog.tools]), show_progress=False)
    known = set(index.vocab_dict)

    def scores(text: str) -> Floats:
        tokens = [token for token in _tokens(package, [text])[0] if token in known]
        return np.asarray(index.get_scores(tokens) if tokens else np.zeros(len(catalog)), np.float32)

    return _by_scores(catalog, scores)


def _tokens(package: Any, texts: list[str]) -> list[list[str]]:
    return list(package.tokenize(texts, stopwords="en", return_ids=False, show_progress=False))


def _by_scores(catalog: Catalog, scores: Callable[[str], Floats]) -> Search:
    async def search(text: str) -> list[ToolId]:
        return best(catalog, scores(text))

    return search


def best(catalog: Catalog, values: Floats) -> list[ToolId]:
    """All tools, best first."""
    return [catalog.tools[place].id for place in best_first(values, np.ones(len(catalog), np.bool_))]
