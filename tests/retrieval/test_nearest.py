"""Ranking through an index: as with all tools scored, but for what is far from the query."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import pytest

from pegboard import Catalog, ToolId
from pegboard.errors import StoreError
from pegboard.model import Floats
from pegboard.protocols import Filter, Hits
from pegboard.retrieval import Retriever, nearest, ranker
from pegboard.retrieval.fusion import softmax, z_score
from pegboard.retrieval.index.exact import ExactVectors
from pegboard.routing_board import RoutingBoard
from pegboard.stores import MemoryEmbeddings
from pegboard.testing import FakeEncoder, fake_tool
from pegboard_bench.synthetic import synthetic_catalog, synthetic_queries

D = 256
QUERIES = synthetic_queries(12, seed=3)


class Noting(ExactVectors):
    """Remembers what it was asked, and fails while it is down."""

    def __init__(self) -> None:
        super().__init__(D)
        self.asked: list[tuple[int, Filter | None]] = []
        self.added: list[ToolId] = []
        self.down = False

    async def add(self, ids: Sequence[ToolId], vectors: Floats) -> None:
        self._check()
        self.added.extend(ids)
        await super().add(ids, vectors)

    async def ids(self) -> frozenset[ToolId]:
        self._check()
        return await super().ids()

    async def search(self, queries: Floats, k: int, where: Filter | None = None) -> list[Hits]:
        self._check()
        self.asked.append((k, where))
        return await super().search(queries, k, where)

    def _check(self) -> None:
        if self.down:
            raise StoreError("The index is down.")


@pytest.fixture(scope="module")
def large() -> Catalog:
    return synthetic_catalog(600, seed=1)


def retriever(catalog: Catalog, index: ExactVectors | None, encoder: FakeEncoder | None = None) -> Retriever:
    encoder = encoder or FakeEncoder(D)
    return Retriever(catalog.tools, catalog.servers, documents=encoder, queries=encoder, index=index)


def order(values: Floats) -> list[int]:
    return [int(place) for place in np.argsort(-values, kind="stable")]


@pytest.mark.requirement("design.index-ranking")
async def test_where_every_tool_is_a_candidate_the_scores_are_those_of_the_exact_index(town: Catalog) -> None:
    query = "book a repair slot for my bicycle and then look up the tides"
    exact = await ranker("hybrid", retriever(town, None)).score(query)
    found = await ranker("hybrid", retriever(town, Noting())).score(query)

    np.testing.assert_allclose(found.values, exact.values, atol=1e-5)
    assert found.parts.keys() == exact.parts.keys()
    for name, values in exact.parts.items():
        np.testing.assert_allclose(found.parts[name], values, atol=1e-5)
    assert found.unscored == exact.unscored == 0
    assert found.jobs is not None
    assert found.jobs.tolist() == exact.jobs.tolist()  # type: ignore[union-attr]


@pytest.mark.requirement("design.index-ranking")
async def test_the_best_tools_are_the_same_and_about_as_likely(large: Catalog, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(nearest, "CANDIDATES", 60)
    monkeypatch.setattr(nearest, "SAMPLE", 200)
    index = Noting()
    exact, found = ranker("hybrid", retriever(large, None)), ranker("hybrid", retriever(large, index))

    for query in QUERIES:
        expected, got = await exact.score(query), await found.score(query)
        assert order(got.values)[0] == order(expected.values)[0]
        assert len(set(order(got.values)[:10]) & set(order(expected.values)[:10])) >= 8
        np.testing.assert_allclose(got.values.max(), expected.values.max(), rtol=0.2)
        np.testing.assert_allclose(got.values.sum() + got.unscored, expected.values.sum(), rtol=0.35)
        assert np.count_nonzero(got.values) < len(large)


@pytest.mark.requirement("design.index-ranking")
async def test_what_the_caller_may_not_use_is_left_out_by_the_index(large: Catalog) -> None:
    index = Noting()
    allowed = np.array([tool.server < "server3" for tool in large.tools], np.bool_)
    allowed[np.flatnonzero(allowed)[::7]] = False
    forbidden = {tool.id for tool, may in zip(large.tools, allowed, strict=True) if not may}
    servers = {tool.server for tool, may in zip(large.tools, allowed, strict=True) if may}

    scores = await ranker("hybrid", retriever(large, index)).score(QUERIES[0], allowed)

    where = index.asked[0][1]
    assert where is not None
    assert where.servers == servers
    assert where.excluded == {tool for tool in forbidden if tool.server in servers}
    assert not scores.values[~allowed].any()


async def test_without_rights_to_mind_the_index_is_asked_without_a_filter(large: Catalog) -> None:
    index = Noting()

    await ranker("hybrid", retriever(large, index)).score(QUERIES[0], np.ones(len(large), np.bool_))

    assert index.asked[0] == (nearest.CANDIDATES, None)


async def test_where_nothing_may_be_used_nothing_is_scored(large: Catalog) -> None:
    scores = await ranker("hybrid", retriever(large, Noting())).score(QUERIES[0], np.zeros(len(large), np.bool_))

    assert not scores.values.any()
    assert scores.unscored == 0


async def test_an_index_that_others_use_too_is_asked_for_this_boards_servers(town: Catalog) -> None:
    index = Noting()
    others = [ToolId("elsewhere", f"tool {number}") for number in range(3)]
    await index.add(others, np.tile(np.eye(1, D, dtype=np.float32), (3, 1)))

    await ranker("hybrid", retriever(town, index)).score("tides")

    assert index.asked[0][1] == Filter(servers=frozenset(town.servers))
    assert set(others) <= await index.ids()


async def test_what_a_server_no_longer_lists_is_removed(catalog_of: Callable[..., Catalog]) -> None:
    index, encoder = Noting(), FakeEncoder(D)
    both, one = fake_tool("stays", "a"), fake_tool("goes", "b")
    await retriever(catalog_of(both, one), index, encoder).warm()

    await retriever(catalog_of(both), index, encoder).warm()

    assert await index.ids() == {both.id}


async def test_a_catalog_is_put_into_the_index_once(town: Catalog) -> None:
    index = Noting()
    shared = retriever(town, index)

    for query in ("tides", "book a repair"):
        await ranker("hybrid", shared).score(query)

    assert sorted(index.added) == sorted(tool.id for tool in town.tools)


@pytest.mark.requirement("design.index-down")
async def test_while_the_index_is_down_words_answer_and_afterwards_all_as_before(town: Catalog) -> None:
    index = Noting()
    found = ranker("hybrid", retriever(town, index))
    before = await found.score("book a repair slot for my bicycle")
    index.down = True
    meanwhile = await found.score("book a repair slot for my bicycle")
    index.down = False
    after = await found.score("book a repair slot for my bicycle")

    assert set(meanwhile.parts) == {"bm25", "name"}
    assert town.tools[order(meanwhile.values)[0]].name == "book_repair"
    np.testing.assert_array_equal(after.values, before.values)
    assert len(index.added) == len(town), "it had lost nothing"


@pytest.mark.requirement("design.index-down")
async def test_what_the_index_lost_while_it_was_down_is_put_into_it_again(town: Catalog) -> None:
    index = Noting()
    found = ranker("hybrid", retriever(town, index))
    before = await found.score("tides")
    index.down = True
    await found.score("tides")
    index.down = False
    await index.remove([tool.id for tool in town.tools])

    np.testing.assert_array_equal((await found.score("tides")).values, before.values)
    assert await index.ids() == {tool.id for tool in town.tools}


@pytest.mark.requirement("design.index-down")
async def test_a_caller_who_does_not_wait_finds_the_index_filled_again_once_it_is_back(town: Catalog) -> None:
    index = Noting()
    shared = retriever(town, index)
    found = ranker("hybrid", shared, patient=False)
    index.down = True
    await found.warm()
    assert set((await found.score("tides")).parts) == {"bm25", "name"}
    index.down = False

    await found.score("tides")
    await shared.filling()

    assert "cosine" in (await found.score("tides")).parts


async def test_a_tool_that_the_index_lost_is_still_found_by_its_words(town: Catalog) -> None:
    index = Noting()
    found = ranker("hybrid", retriever(town, index))
    await found.warm()
    lost = next(tool for tool in town.tools if tool.name == "book_repair")
    await index.remove([lost.id])

    scores = await found.score("book_repair")

    assert lost in [town.tools[place] for place in order(scores.values)[:2]]


async def test_a_board_has_its_tools_vectors_wherever_they_are_kept(
    town: Catalog, board_of: Callable[..., RoutingBoard]
) -> None:
    embeddings = MemoryEmbeddings()
    exact = board_of(town, parts={"embeddings": embeddings})
    indexed = board_of(town, parts={"embeddings": embeddings, "index": lambda name: ExactVectors(D)})

    np.testing.assert_array_equal(await indexed.vectors(), await exact.vectors())
    assert (await indexed.route("look up the tides")).active == (await exact.route("look up the tides")).active


async def test_beyond_a_size_jobs_are_not_compared(town: Catalog, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pegboard.retrieval.retriever.MOST_COMPARED", len(town) - 1)

    assert (await ranker("hybrid", retriever(town, Noting())).score("tides")).jobs is None
    assert (await ranker("hybrid", retriever(town, None)).score("tides")).jobs is not None


def test_values_that_stand_for_many_share_for_each() -> None:
    few = softmax(np.array([2.0, 1.0], np.float32), np.array([1, 3], np.float32))
    many = softmax(np.array([2.0, 1.0, 1.0, 1.0], np.float32))

    np.testing.assert_allclose(few, many[:2], rtol=1e-6)


def test_a_z_score_over_other_values_has_their_mean_and_deviation() -> None:
    over = np.array([1, 2, 3, 4], np.float32)

    np.testing.assert_allclose(z_score(over[2:], over), z_score(over)[2:], rtol=1e-6)
    assert z_score(over, np.ones(3, np.float32)).tolist() == [0, 0, 0, 0]
