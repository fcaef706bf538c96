"""Table 5 of Tool Attention: Tool Attention without a part of it, or with another."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from pegboard.evaluation.methods import bm25
from pegboard_bench.tax.boards import Place, board, board_over, tools_of
from pegboard_bench.tax.request import Conversation, Method, Sent
from pegboard_bench.tax.router_methods import Routed
from pegboard_bench.tax.tasks import Task
from pegboard_bench.tax.testbeds import Testbed
from pegboard_bench.tax.tfidf import TfIdf

K = 10


class SummariesOnly(Routed):
    """Phase 1 alone: the model knows that a tool is there, and not its parameters."""

    async def play(self, task: Task) -> Sequence[Sent]:
        return [Sent(texts=sent.texts) for sent in await super().play(task)]


class ByTfIdf(Routed):
    """Another encoder in the place of MiniLM, with the same threshold and k."""

    async def begin(self, testbed: Testbed) -> None:
        encoder = TfIdf([tool.summary for tool in testbed.catalog.tools])
        self.board = await board_over(testbed, encoder, profile="attention", threshold=0.28)
        self.catalog = self.board.catalog


class ByRanker:
    """The ten best by another ranker among the tools that the state allows, where cosines have no say."""

    def __init__(self, place: Place, kind: str) -> None:
        self._place = place
        self._kind = kind

    async def begin(self, testbed: Testbed) -> None:
        self._catalog = testbed.catalog
        self._attention = await board(testbed, self._place, profile="attention")
        self._hybrid = await board(testbed, self._place, profile="hybrid")
        self._bm25 = bm25(testbed.catalog)

    async def play(self, task: Task) -> Sequence[Sent]:
        talk, found = Conversation(), []
        for step in task.steps:
            turn = talk.turn(step)
            allowed = self._attention.allowed(turn)
            if self._kind == "bm25":
                ranked = [tool for tool in await self._bm25(talk.asked) if tool in allowed]
            else:
                ranked = [candidate.tool for candidate in await self._hybrid.rank(turn)]
            best = frozenset(ranked[:K])
            pool = (self._attention.pool(turn),)
            found.append(Sent(late=tools_of(self._catalog, best), texts=pool, reached=best))
            talk.called(step)
        return found


def _attention(**settings: Any) -> Callable[[Place], Method]:
    return lambda place: Routed(place, late=True, profile="attention", **settings)


MPNET = "mpnet"
VARIANTS: Mapping[str, tuple[str, Callable[[Place], Method]]] = {
    MPNET: (
        "MPNet as published instead of MiniLM",
        lambda place: Routed(place, late=True, weights=place.mpnet, profile="attention"),
    ),
    "no_preconditions": (
        "without preconditions",
        lambda place: Routed(place, late=True, rules=False, profile="attention"),
    ),
    "summaries_only": ("summaries only (k = 0)", lambda place: SummariesOnly(place, late=True, profile="attention")),
    "k5": ("k = 5", _attention(k=5)),
    "k20": ("k = 20", _attention(k=20)),
    "theta_0.15": ("θ = 0.15", _attention(threshold=0.15)),
    "theta_0.40": ("θ = 0.40", _attention(threshold=0.40)),
    "tfidf": ("TF-IDF instead of MiniLM", lambda place: ByTfIdf(place, late=True, profile="attention")),
    "bm25": ("BM25F, the ten best", lambda place: ByRanker(place, "bm25")),
    "hybrid_ranker": ("`hybrid`'s ranker, the ten best", lambda place: ByRanker(place, "hybrid")),
}
"""The row "without the gate" is the whole method: the gate changes no token."""


def available(place: Place) -> tuple[str, ...]:
    """The variants that can be measured here: MPNet's weights are not in the package."""
    return tuple(name for name in VARIANTS if name != MPNET or place.mpnet is not None)
