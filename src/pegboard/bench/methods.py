"""What is compared: each method ranks the tools of one catalog for a text."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from importlib.util import find_spec
from typing import Any

import numpy as np

from pegboard.board import Board
from pegboard.catalog import Catalog
from pegboard.compose import Parts, build
from pegboard.model import Decision, Floats, ToolId
from pegboard.retrieval.lexical import Bm25f
from pegboard.retrieval.texts import fields, name_and_description
from pegboard.routing.select import best_first
from pegboard.settings import Settings

Search = Callable[[str], Awaitable[Sequence[ToolId]]]

UNGATED: Mapping[str, str] = {"minilm": "attention", "hybrid": "hybrid"}
"""Method to profile: its scores alone, with no threshold, k or budget."""

GATED = ("attention", "semantic", "keyword")
"""Profiles as their users get them."""

BASELINES = ("bm25", "minilm")
"""What `hybrid` has to beat."""


async def searches(catalog: Catalog, settings: Settings, parts: Parts) -> dict[str, Search]:
    """Every method over one catalog, with its indexes built."""
    found: dict[str, Search] = {"bm25": bm25(catalog)}
    if find_spec("bm25s"):
        found["bm25s"] = bm25s(catalog)
    for method, profile in UNGATED.items():
        found[method] = ungated(await _board(catalog, profile, settings, parts))
    for profile in GATED:
        found[profile] = gated(await _board(catalog, profile, settings, parts))
    return found


async def _board(catalog: Catalog, profile: str, settings: Settings, parts: Parts) -> Board:
    board = build(settings.model_copy(update={"profile": profile}), catalog, parts=parts)
    await board.warm()
    return board


def ungated(board: Board) -> Search:
    async def search(text: str) -> list[ToolId]:
        return [candidate.tool for candidate in await board.rank(text)]

    return search


def gated(board: Board) -> Search:
    async def search(text: str) -> list[ToolId]:
        return chosen(await board.route(text))

    return search


def chosen(decision: Decision) -> list[ToolId]:
    """The active tools, best first."""
    active = set(decision.active)
    ranked = [candidate.tool for candidate in decision.candidates if candidate.tool in active]
    return ranked + [tool for tool in decision.active if tool not in set(ranked)]


def bm25(catalog: Catalog) -> Search:
    """Our BM25F alone."""
    index = Bm25f([fields(tool, catalog.servers.get(tool.server)) for tool in catalog.tools])
    return _by_scores(catalog, index.scores)


def bm25s(catalog: Catalog) -> Search:
    """The bm25s package with its own defaults, on name and description: a BM25 that is not ours."""
    import bm25s as package

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
    everything = np.ones(len(catalog), np.bool_)

    async def search(text: str) -> list[ToolId]:
        return [catalog.tools[place].id for place in best_first(scores(text), everything)]

    return search
