from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
from sklearn.metrics import log_loss as reference_loss

from pegboard import Catalog, ToolId
from pegboard.errors import EncoderError
from pegboard.evaluation.calibration.labelled_queries import (
    LabelledQuery,
    calibration_error,
    folds,
    judge,
    label,
    log_loss,
)
from pegboard.evaluation.datasets import Query
from pegboard.retrieval.fusion_fit import Example
from pegboard.routing_board import RoutingBoard
from pegboard.testing import fake_tool


def labelled(goals: list[set[int]], canonical: list[int]) -> LabelledQuery:
    parts = {"bm25": np.zeros(len(canonical), np.float32)}
    example = Example(parts=parts, goals=[frozenset(goal) for goal in goals], clauses=1)
    return LabelledQuery(text="x", example=example, canonical=np.array(canonical))


def test_the_log_loss_is_that_of_scikit_learn_summed_over_the_tools() -> None:
    values, relevant = np.array([0.8, 0.3, 0.05], np.float32), np.array([True, False, True])

    assert log_loss(values, relevant) == pytest.approx(3 * reference_loss(relevant, values), rel=1e-5)


def test_a_certain_error_costs_much_and_not_infinitely_much() -> None:
    assert 10 < log_loss(np.array([0.0, 1.0], np.float32), np.array([True, False])) < 100


def test_copies_of_a_tool_take_one_place() -> None:
    query = labelled([{6}], canonical=[0, 0, 0, 0, 0, 0, 1])
    judged = judge(query, np.array([0.9, 0.8, 0.7, 0.6, 0.5, 0.4, 0.3], np.float32))

    assert (judged.recall, judged.mrr) == (1.0, 0.5)


def test_probabilities_that_come_true_as_often_as_they_say_have_no_error() -> None:
    query = labelled([{0}], canonical=[0, 1])
    honest = [
        replace(judge(query, np.zeros(2, np.float32)), said=np.full(4, 0.25, np.float32), true=np.arange(4) == place)
        for place in (0, 1, 2, 3)
    ]
    boastful = [replace(each, said=np.full(4, 0.75, np.float32)) for each in honest]

    assert calibration_error(boastful) > 0.4
    assert calibration_error(honest * 15) < 0.15


def test_folds_are_of_equal_size_and_hold_equal_texts_together() -> None:
    texts = [f"request {number % 20}" for number in range(60)]
    fold_of = folds(texts, 5, seed=3)

    assert Counter(fold_of.tolist()) == dict.fromkeys(range(5), 12)
    assert all(len({fold_of[place] for place in range(60) if texts[place] == text}) == 1 for text in texts)
    assert (fold_of == folds(texts, 5, seed=3)).all()


async def test_queries_are_labelled_with_every_copy_of_a_tool(
    board_of: Callable[..., RoutingBoard], catalog_of: Callable[..., Catalog]
) -> None:
    tools = [fake_tool("send", "Send a letter.", server=server) for server in ("post", "mail")]
    board = board_of(catalog_of(*tools, fake_tool("stamp", "Buy a stamp.", server="post")))
    relevant = (ToolId("mail", "send"),)
    (found,) = await label(board, [Query(id="1", text="send a letter, then sleep well", relevant=relevant)])

    assert [board.catalog.tools[place].id.name for goal in found.example.goals for place in sorted(goal)] == [
        "send"
    ] * 2
    assert set(found.example.parts) == {"cosine", "clause", "bm25", "name", "named", "server"}
    assert found.example.clauses == 2


async def test_queries_of_a_broken_encoder_are_not_labelled(
    town: Catalog, board_of: Callable[..., RoutingBoard], encoder: object
) -> None:
    board = board_of(town)
    await board.warm()
    encoder.broken = True  # type: ignore[attr-defined]

    with pytest.raises(EncoderError, match="'7' has no vector"):
        await label(board, [Query(id="7", text="tides", relevant=(ToolId("weather", "get_tides"),))])
