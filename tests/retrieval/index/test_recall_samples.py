"""What an index finds is measured while it is used."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pytest

from pegboard import ToolId
from pegboard.errors import StoreError
from pegboard.model import Floats
from pegboard.protocols import Filter, Hits, VectorIndex
from pegboard.retrieval.index import recall_samples
from pegboard.retrieval.index.exact import ExactIndex, ExactVectors
from pegboard.retrieval.index.recall_samples import RecallSample, RecallSamples
from pegboard.testing import FakeClock
from retrieval.index.test_contract import MANY, D, vectors

MINUTE = 60.0


class Forgetful:
    """An exact index whose searches over all tools leave out those with an odd number, as an approximate one might."""

    def __init__(self, *, fails: bool = False) -> None:
        self._index = ExactVectors(D)
        self._fails = fails
        self.asked = 0

    async def add(self, ids: Sequence[ToolId], rows: Floats) -> None:
        await self._index.add(ids, rows)

    async def remove(self, ids: Sequence[ToolId]) -> None:
        await self._index.remove(ids)

    async def ids(self) -> frozenset[ToolId]:
        return await self._index.ids()

    async def search(self, queries: Floats, k: int, where: Filter | None = None) -> list[Hits]:
        if where is not None and where.only is not None:
            self.asked += len(where.only)
            if self._fails:
                raise StoreError("The index is gone.")
            return await self._index.search(queries, k, where)
        odd = frozenset(tool for tool in await self._index.ids() if int(tool.name.split()[1]) % 2)
        hidden = Filter(servers=where and where.servers, excluded=odd | (where.excluded if where else frozenset()))
        return await self._index.search(queries, k, hidden)


def sampled(index: VectorIndex) -> tuple[RecallSamples, FakeClock, list[RecallSample]]:
    clock, said = FakeClock(), list[RecallSample]()
    return RecallSamples(index, clock, said.append, seconds=MINUTE), clock, said


def missed(rows: Floats, query: Floats, where: Callable[[ToolId], bool] = lambda tool: True) -> int:
    """Of the ten nearest, those that `Forgetful` leaves out."""
    index = ExactIndex(D)
    index.add(MANY, rows)
    [hits] = index.search(query, 10, Filter(only=frozenset(filter(where, MANY))))
    return sum(int(tool.name.split()[1]) % 2 for tool, _ in hits)


async def test_a_search_is_compared_with_all_tools_once_a_minute() -> None:
    rows, queries = vectors(5, len(MANY)), vectors(6, 3)
    index, clock, said = sampled(Forgetful())
    await index.add(MANY, rows)

    await index.search(queries[:1], 10)
    await index.compared()
    assert said == []  # a process of a few seconds measures nothing
    for at in range(3):
        clock.advance(MINUTE)
        await index.search(queries[at : at + 1], 50)
        await index.search(queries, 50)
        await index.compared()

    lost = [missed(rows, queries[at : at + 1]) for at in range(3)]
    assert sum(lost) > 0
    assert said == [RecallSample(wanted=10, found=10 - each, compared=len(MANY)) for each in lost]


async def test_only_tools_that_a_search_may_find_are_wanted() -> None:
    rows, query = vectors(5, len(MANY)), vectors(6, 1)
    index, clock, said = sampled(Forgetful())
    await index.add(MANY, rows)
    await index.remove(MANY[:600])
    clock.advance(MINUTE)

    await index.search(query, 50, Filter(servers=frozenset({"server 1", "server 2", "server 3"})))
    await index.compared()

    def may(tool: ToolId) -> bool:
        return tool.server in ("server 1", "server 2", "server 3") and tool not in MANY[:600]

    assert said == [RecallSample(wanted=10, found=10 - missed(rows, query, may), compared=sum(map(may, MANY)))]


async def test_of_a_large_board_a_sample_is_compared(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recall_samples, "MOST_COMPARED", 400)
    rows, queries = vectors(5, len(MANY)), vectors(6, 60)
    forgetful = Forgetful()
    index, clock, said = sampled(forgetful)
    await index.add(MANY, rows)
    await index.add(MANY, rows)  # again, as after a failure

    for at in range(len(queries)):
        clock.advance(MINUTE)
        await index.search(queries[at : at + 1], 50)
        await index.compared()

    assert all(200 <= each.compared <= 400 for each in said)
    whole = sum(10 - missed(rows, queries[at : at + 1]) for at in range(60)) / 600
    seen = sum(each.found for each in said) / sum(each.wanted for each in said)
    assert abs(seen - whole) < 0.1


async def test_an_index_that_fails_meanwhile_has_answered() -> None:
    index, clock, said = sampled(Forgetful(fails=True))
    await index.add(MANY, vectors(5, len(MANY)))
    clock.advance(MINUTE)

    assert len((await index.search(vectors(6, 1), 10))[0]) == 10
    await index.compared()

    assert said == []


async def test_every_index_says_of_each_tool_what_the_exact_one_says(make_index: Callable[[], VectorIndex]) -> None:
    """So that its recall is measured by itself."""
    rows, query = vectors(5, len(MANY)), vectors(6, 1)
    index, clock, said = sampled(make_index())
    await index.add(MANY, rows)
    clock.advance(MINUTE)

    [hits] = await index.search(query, 50)
    await index.compared()

    exact = ExactIndex(D)
    exact.add(MANY, rows)
    [nearest] = exact.search(query, 10)
    there = {tool for tool, _ in hits[:10]}
    assert said == [
        RecallSample(wanted=10, found=sum(tool in there for tool, _ in nearest), compared=len(MANY)),
    ]
