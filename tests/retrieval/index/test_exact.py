from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics.pairwise import cosine_similarity

from pegboard import ToolId
from pegboard.model import Floats
from pegboard.protocols import Filter
from pegboard.retrieval.index.exact import ExactIndex

D = 8
IDS = [ToolId(server, name) for server in "ab" for name in "uvwxyz"]


def vectors(seed: int, count: int) -> Floats:
    drawn = np.random.default_rng(seed).normal(size=(count, D)).astype(np.float32)
    return np.asarray(drawn / np.linalg.norm(drawn, axis=1, keepdims=True), np.float32)


def index_of(ids: list[ToolId], rows: Floats) -> ExactIndex:
    index = ExactIndex(D)
    index.add(ids, rows)
    return index


@pytest.mark.requirement("000.eq5")
@given(seed=st.integers(0, 10_000), count=st.integers(1, 30))
def test_similarities_are_cosines(seed: int, count: int) -> None:
    rows = vectors(seed, count + 1)
    index = index_of([ToolId("s", str(place)) for place in range(count)], rows[:count])

    expected = cosine_similarity(rows[count:], rows[:count])[0]

    np.testing.assert_allclose(index.similarities(rows[count]), expected, atol=1e-6)


@given(
    seed=st.integers(0, 10_000),
    k=st.integers(0, 15),
    servers=st.none() | st.frozensets(st.sampled_from("abc")),
    excluded=st.frozensets(st.sampled_from(IDS)),
)
def test_a_search_finds_what_a_look_at_every_tool_finds(
    seed: int, k: int, servers: frozenset[str] | None, excluded: frozenset[ToolId]
) -> None:
    rows, queries = vectors(seed, len(IDS)), vectors(seed + 1, 3)
    found = index_of(IDS, rows).search(queries, k, Filter(servers=servers, excluded=excluded))

    for query, answer in zip(queries, found, strict=True):
        passing = [
            i for i, tool in enumerate(IDS) if (servers is None or tool.server in servers) and tool not in excluded
        ]
        best = sorted(passing, key=lambda i: -float(query @ rows[i]))[:k]
        assert [tool for tool, _ in answer] == [IDS[i] for i in best]
        np.testing.assert_allclose([score for _, score in answer], [query @ rows[i] for i in best], atol=1e-6)


operations = st.lists(
    st.tuples(st.sampled_from(["add", "remove"]), st.lists(st.sampled_from(IDS), max_size=5)), max_size=8
)


@given(operations=operations)
def test_adding_and_removing_in_any_order_leaves_the_latest_vector_of_each_tool(
    operations: list[tuple[str, list[ToolId]]],
) -> None:
    index, expected = ExactIndex(D), dict[ToolId, Floats]()
    for number, (operation, ids) in enumerate(operations):
        if operation == "add":
            rows = vectors(number, len(ids))
            index.add(ids, rows)
            expected |= dict(zip(ids, rows, strict=True))
        else:
            index.remove(ids)
            expected = {tool: row for tool, row in expected.items() if tool not in ids}

    query = vectors(99, 1)
    found = dict(index.search(query, 100)[0])
    assert len(index) == len(expected) == len(index.similarities(query[0]))
    assert found.keys() == expected.keys()
    assert all(score == pytest.approx(float(query[0] @ expected[tool]), abs=1e-6) for tool, score in found.items())


def test_equal_scores_stay_in_the_order_they_were_added() -> None:
    same = np.tile(vectors(1, 1), (3, 1))

    found = index_of(IDS[:3], same).search(same[:1], 2)[0]

    assert [tool for tool, _ in found] == IDS[:2]


def test_an_empty_index_finds_nothing() -> None:
    index = ExactIndex(D)

    assert index.search(vectors(1, 2), 5) == [[], []]
    assert index.similarities(vectors(1, 1)[0]).shape == (0,)
    index.remove(IDS)
    assert len(index) == 0
