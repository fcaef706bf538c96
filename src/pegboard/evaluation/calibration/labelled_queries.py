"""Labelled queries scored by a board, and the quality of a scoring for each query."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from pegboard.errors import EncoderError
from pegboard.evaluation import ranking_metrics
from pegboard.evaluation.datasets import Query
from pegboard.model import Floats, Mask
from pegboard.retrieval import Progress
from pegboard.retrieval.fusion_fit import Example
from pegboard.retrieval.intents import clauses
from pegboard.routing_board import RoutingBoard

TOP = 20
"""Number of best tools per query whose probabilities are judged: those that could be chosen."""
BINS = 15
"""Number of bins with equally many tools."""
SURE = 1e-7
"""Probabilities are clipped to [SURE, 1 - SURE] for the log loss, about the resolution of float32."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LabelledQuery:
    """A query with its score parts and goals over one catalog of n tools. Copies of a tool share a number in
    ``canonical``. ``query_vector`` has shape (d,).
    """

    text: str
    example: Example
    canonical: NDArray[np.int64]
    query_vector: Floats | None = None

    @property
    def wanted(self) -> ranking_metrics.Goals:
        return frozenset(frozenset(self.canonical[list(goal)].tolist()) for goal in self.example.goals)


@dataclass(frozen=True, slots=True, kw_only=True)
class Judgement:
    """The quality of one scoring for one query; ``loss`` is the log loss over all tools, in nats.

    ``said`` and ``true`` are the probabilities and the labels of the `TOP` best tools.
    """

    recall: float
    mrr: float
    loss: float
    said: Floats
    true: Mask


async def label(board: RoutingBoard, queries: Sequence[Query], progress: Progress | None = None) -> list[LabelledQuery]:
    """Score every query with the board. The weights sum to 1. Raises EncoderError if the encoder fails."""
    numbers = ranking_metrics.canonical_ids(board.catalog)
    canonical = np.array([numbers[tool.id] for tool in board.catalog.tools])
    found = []
    for done, query in enumerate(queries, 1):
        scores = await board.scores(query.text)
        if scores is None or scores.query_vector is None:
            raise EncoderError(
                f"Query {query.id!r} has no vector.",
                remedy="Remove queries without text, and check the encoder with `pegboard doctor`.",
            )
        goals = [
            frozenset(np.flatnonzero(np.isin(canonical, list(goal))).tolist())
            for goal in ranking_metrics.goals(query.relevant, query.any_of, numbers)
        ]
        example = Example(parts=scores.parts, goals=goals, clauses=len(clauses(query.text)), weight=1 / len(queries))
        found.append(
            LabelledQuery(text=query.text, example=example, canonical=canonical, query_vector=scores.query_vector)
        )
        if progress is not None:
            progress(done, len(queries))
    return found


def judge(query: LabelledQuery, values: Floats) -> Judgement:
    """Judge probabilities, shape (n,), against the labels of a query."""
    order = np.argsort(-values, kind="stable")
    wanted = query.wanted
    found = ranking_metrics.places(wanted, query.canonical[order].tolist())
    relevant = query.example.relevant
    return Judgement(
        recall=ranking_metrics.recall(found, len(wanted), 5),
        mrr=ranking_metrics.reciprocal_rank(found),
        loss=log_loss(values, relevant),
        said=values[order[:TOP]],
        true=relevant[order[:TOP]],
    )


def log_loss(values: Floats, relevant: Mask) -> float:
    """−Σ_t ln P(label of tool t), in nats."""
    chances = np.clip(values.astype(np.float64), SURE, 1 - SURE)
    return -float(np.log(np.where(relevant, chances, 1 - chances)).sum())


def calibration_error(judgements: Iterable[Judgement]) -> float:
    """Expected calibration error over the `TOP` tools of every query, in bins of equal mass (Naeini et al. 2015)."""
    pairs = [(each.said, each.true) for each in judgements]
    said = np.concatenate([values for values, _ in pairs]).astype(np.float64)
    true = np.concatenate([relevant for _, relevant in pairs]).astype(np.float64)
    bins = [rows for rows in np.array_split(np.argsort(said, kind="stable"), BINS) if len(rows)]
    return sum(len(rows) * abs(float(said[rows].mean() - true[rows].mean())) for rows in bins) / len(said)


def folds(texts: Sequence[str], count: int, seed: int) -> NDArray[np.int64]:
    """A random fold for each query, shape (n,). Folds have equal sizes, and equal texts are in the same fold."""
    distinct = list(dict.fromkeys(texts))
    shuffled = np.random.default_rng(seed).permutation(len(distinct))
    fold_of = {text: int(place) % count for text, place in zip(distinct, shuffled, strict=True)}
    return np.array([fold_of[text] for text in texts])
