"""What every index promises; the exact one is the oracle."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pegboard import ToolId
from pegboard.model import Floats
from pegboard.protocols import Filter, Hits, VectorIndex
from pegboard.retrieval.index.exact import ExactIndex

D = 8
IDS = [ToolId(server, name) for server in ("a", "b", 'quo"ted ünïcode') for name in "uvwxyz"]
MANY = [ToolId(f"server {number % 40}", f"tool {number}") for number in range(1_500)]

MakeIndex = Callable[[], VectorIndex]

few = settings(max_examples=15, suppress_health_check=[HealthCheck.function_scoped_fixture])
"""An example is a new index: on a server that is a collection of its own."""

filters = st.none() | st.builds(
    Filter,
    servers=st.none() | st.frozensets(st.sampled_from(sorted({tool.server for tool in IDS} | {"unknown"}))),
    excluded=st.frozensets(st.sampled_from([*IDS, ToolId("unknown", "tool")])),
    only=st.none() | st.frozensets(st.sampled_from([*IDS, ToolId("unknown", "tool")])),
)
operations = st.lists(
    st.tuples(st.sampled_from(["add", "remove"]), st.lists(st.sampled_from(IDS), max_size=6)), min_size=1, max_size=5
)


def vectors(seed: int, count: int, dimensions: int = D) -> Floats:
    drawn = np.random.default_rng(seed).normal(size=(count, dimensions)).astype(np.float32)
    return np.asarray(drawn / np.linalg.norm(drawn, axis=1, keepdims=True), np.float32)


def oracle(ids: Sequence[ToolId], rows: Floats) -> ExactIndex:
    index = ExactIndex(D)
    index.add(ids, rows)
    return index


def assert_same(found: list[Hits], expected: list[Hits]) -> None:
    """The same scores at every place, and the same ids but for those whose scores differ by rounding alone."""
    assert [len(row) for row in found] == [len(row) for row in expected]
    for got, wanted in zip(found, expected, strict=True):
        np.testing.assert_allclose([score for _, score in got], [score for _, score in wanted], atol=2e-6)
        distinct = all(one - other > 5e-6 for (_, one), (_, other) in pairwise(wanted))
        if distinct:
            assert {tool for tool, _ in got[:-1]} == {tool for tool, _ in wanted[:-1]}
            assert [tool for tool, _ in got[:-1]] == [tool for tool, _ in wanted[:-1]]


def run(work: Coroutine[Any, Any, None]) -> None:
    """On a loop of its own, as `pegboard.routing_board.route_now` does: an index belongs to none."""
    asyncio.run(work)


@pytest.mark.requirement("design.index-contract")
@few
@given(seed=st.integers(0, 10_000), k=st.integers(0, 25), where=filters)
def test_any_filter_and_any_k_find_what_the_exact_index_finds(
    make_index: MakeIndex, seed: int, k: int, where: Filter | None
) -> None:
    rows, queries = vectors(seed, len(IDS)), vectors(seed + 1, 3)

    async def check() -> None:
        index = make_index()
        await index.add(IDS, rows)
        assert_same(await index.search(queries, k, where), oracle(IDS, rows).search(queries, k, where))

    run(check())


@pytest.mark.requirement("design.index-contract")
@few
@given(operations=operations)
def test_adding_replacing_and_removing_in_any_order_leaves_the_latest_vector_of_each_tool(
    make_index: MakeIndex, operations: list[tuple[str, list[ToolId]]]
) -> None:
    async def check() -> None:
        index, expected = make_index(), ExactIndex(D)
        for number, (operation, ids) in enumerate(operations):
            if operation == "add":  # with ids that stand twice in it, too
                rows = vectors(number, len(ids))
                await index.add(ids, rows)
                expected.add(ids, rows)
            else:
                await index.remove(ids)
                expected.remove(ids)
        queries = vectors(99, 2)
        assert await index.ids() == frozenset(expected.tools)
        assert_same(await index.search(queries, 100), expected.search(queries, 100))

    run(check())


async def test_an_empty_index_finds_nothing(make_index: MakeIndex) -> None:
    index = make_index()

    assert await index.search(vectors(1, 2), 5) == [[], []]
    await index.remove(IDS)
    assert await index.ids() == frozenset()
    await index.add([], vectors(1, 0))
    assert await index.search(vectors(1, 0), 5) == []


async def test_equal_vectors_are_found_in_the_same_order_each_time_and_none_is_lost(make_index: MakeIndex) -> None:
    index = make_index()
    await index.add(IDS, np.tile(vectors(1, 1), (len(IDS), 1)))

    answers = [await index.search(vectors(1, 1), 7) for _ in range(3)]

    assert answers[0] == answers[1] == answers[2]
    assert len(answers[0][0]) == 7
    longer = await index.search(vectors(1, 1), len(IDS))
    assert {tool for tool, _ in longer[0]} == set(IDS)
    assert longer[0][:7] == answers[0][0]


async def test_an_index_that_was_emptied_can_be_filled_again(make_index: MakeIndex) -> None:
    index, rows = make_index(), vectors(3, len(IDS))
    await index.add(IDS, rows)
    await index.remove(IDS)
    await index.add(IDS[:5], rows[:5])

    assert_same(await index.search(rows[:2], 9), oracle(IDS[:5], rows[:5]).search(rows[:2], 9))


@pytest.mark.requirement("design.index-contract")
@pytest.mark.parametrize(
    "where",
    [
        None,
        Filter(servers=frozenset({"server 7"})),
        Filter(servers=frozenset(f"server {number}" for number in range(30))),
        Filter(excluded=frozenset(MANY[:1_490])),
        Filter(excluded=frozenset(MANY[::2])),
        Filter(only=frozenset(MANY[::10])),
        Filter(only=frozenset(MANY[:900]), excluded=frozenset(MANY[::3])),
        Filter(servers=frozenset({"server 1", "server 2"}), excluded=frozenset(MANY[:200])),
    ],
    ids=["none", "one server", "most servers", "ten left", "every other", "only few", "only many", "both"],
)
async def test_of_many_vectors_a_filter_leaves_nearly_all_that_an_exact_search_finds(
    make_index: MakeIndex, where: Filter | None
) -> None:
    """And never fewer, nor any that does not pass."""
    rows, queries = vectors(5, len(MANY)), vectors(6, 12)
    index = make_index()
    await index.add(MANY, rows)

    found, expected = await index.search(queries, 10, where), oracle(MANY, rows).search(queries, 10, where)

    assert [len(row) for row in found] == [len(row) for row in expected]
    assert all(where is None or where.passes(tool) for row in found for tool, _ in row)
    best = {(number, tool) for number, row in enumerate(expected) for tool, _ in row}
    assert len(best & {(number, tool) for number, row in enumerate(found) for tool, _ in row}) >= 0.95 * len(best)
