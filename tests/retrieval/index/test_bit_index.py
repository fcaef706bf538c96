from __future__ import annotations

import errno
import os

import numpy as np
import pytest

from pegboard import ToolId
from pegboard.compose import default_parts
from pegboard.errors import StoreError
from pegboard.model import Floats
from pegboard.protocols import Filter
from pegboard.retrieval.index import bit_index, bit_lists
from pegboard.retrieval.index.bit_index import CompressedIndex
from pegboard.retrieval.index.bit_lists import BitLists, lowest
from pegboard.retrieval.index.exact import ExactIndex
from pegboard.settings import Settings
from pegboard.testing import FakeEncoder

D = 64
IDS = [ToolId(f"server {number % 50}", f"tool {number}") for number in range(12_000)]


def clustered(seed: int, count: int) -> Floats:
    """As vectors of tools are: near to some, far from most."""
    draw = np.random.default_rng(seed)
    centres = draw.normal(size=(200, D))
    rows = centres[draw.integers(0, len(centres), count)] + 0.5 * draw.normal(size=(count, D))
    return np.asarray(rows / np.linalg.norm(rows, axis=1, keepdims=True), np.float32)


def test_the_setting_makes_it() -> None:
    assert isinstance(
        default_parts(Settings(index="compressed", index_recall=0), encoder=FakeEncoder()).index(""), CompressedIndex
    )


@pytest.mark.requirement("design.index-recall", "029.index")
@pytest.mark.parametrize(
    "where",
    [
        None,
        Filter(servers=frozenset({"server 3"})),
        Filter(servers=frozenset(f"server {number}" for number in range(25))),
        Filter(excluded=frozenset(IDS[::3])),
    ],
    ids=["none", "one server", "half of the servers", "a third left out"],
)
async def test_of_many_vectors_nearly_all_is_found_that_an_exact_search_finds(
    where: Filter | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bit_index, "BY_BITS", 2_000)
    rows = clustered(1, len(IDS) + 50)
    index, oracle = CompressedIndex(D, exact_up_to=1_000, probes=6), ExactIndex(D)
    await index.add(IDS, rows[: len(IDS)])
    oracle.add(IDS, rows[: len(IDS)])

    found = await index.search(rows[len(IDS) :], 10, where)
    best = oracle.search(rows[len(IDS) :], 10, where)

    shares = [len(dict(got).keys() & dict(all_).keys()) / len(all_) for got, all_ in zip(found, best, strict=True)]
    assert np.mean(shares) >= 0.98
    assert index.lists > 6
    exact = dict(best[0])
    assert all(abs(score - exact[tool]) < 1e-5 for tool, score in found[0] if tool in exact)


@pytest.mark.requirement("029.index")
async def test_tools_that_come_and_go_leave_no_rows_behind() -> None:
    index, rows = CompressedIndex(D, exact_up_to=500), clustered(2, len(IDS))
    await index.add(IDS[:2_000], rows[:2_000])
    lists = index.lists
    for start in range(2_000, 12_000, 500):
        await index.add(IDS[start : start + 500], rows[start : start + 500])
        await index.remove(IDS[start : start + 500])

    assert await index.ids() == set(IDS[:2_000])
    assert len(index._tools) < 4_000
    assert index.lists <= 3 * lists
    (everything,) = await index.search(rows[:1], 12_000)
    assert len(everything) == 2_000


async def test_a_disk_that_is_full_is_an_error_and_what_was_there_is_still_found(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def full(_descriptor: int, _size: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    index, rows = CompressedIndex(D), clustered(4, 5_000)
    await index.add(IDS[:1_000], rows[:1_000])
    with monkeypatch.context() as patched:
        patched.setattr(bit_index, "extend_file", full)
        for _ in range(3):  # each query tries again
            with pytest.raises(StoreError, match="no room"):
                await index.add(IDS[1_000:5_000], rows[1_000:])
    assert await index.ids() == set(IDS[:1_000])
    assert [hits[0][0] for hits in await index.search(rows[:9], 1)] == IDS[:9]

    await index.add(IDS[1_000:5_000], rows[1_000:])
    assert [hits[0][0] for hits in await index.search(rows[-9:], 1)] == IDS[4_991:5_000]
    assert len(index._tools) == 5_000


@pytest.mark.requirement("029.index")
async def test_a_tool_is_found_as_soon_as_it_is_added_and_gone_as_soon_as_it_is_removed() -> None:
    index, rows = CompressedIndex(D, exact_up_to=500), clustered(3, 3_000)
    await index.add(IDS[:2_999], rows[:2_999])
    new = ToolId("new", "tool")
    for _ in range(3):
        await index.add([new], rows[2_999:])
        assert (await index.search(rows[2_999:], 1))[0][0][0] == new
        await index.remove([new])
        assert new not in dict((await index.search(rows[2_999:], 10))[0])


async def test_without_lists_equal_tools_are_ranked_in_the_order_added_and_removed_ones_are_gone() -> None:
    index, rows = CompressedIndex(D), clustered(5, 300)
    rows[:100] = rows[100]
    await index.add(IDS[:300], rows)
    await index.remove(IDS[:50])
    await index.add(IDS[:25], rows[:25])

    (found,) = await index.search(rows[:1], 80)

    assert [tool for tool, _ in found[:76]] == [*IDS[50:101], *IDS[:25]]
    assert not {tool for tool, _ in found} & set(IDS[25:50])


def test_the_lowest_distances_are_found_however_many_are_equal() -> None:
    distances = np.random.default_rng(6).integers(0, 9, 500).astype(np.uint16)
    for number in (1, 100, 499, 500):
        places = lowest(distances, number)
        assert len(set(places.tolist())) == number
        assert sorted(distances[places]) == sorted(distances)[:number]


@pytest.mark.requirement("029.index")
def test_a_change_touches_one_list() -> None:
    """However many lists there are: only rows of the list that is split are read."""
    rows, read = clustered(4, 9_000), []

    def vectors_of(some: bit_lists.Rows) -> Floats:
        read.append(len(some))
        return rows[some]

    lists = BitLists(np.zeros(D, np.float32), vectors_of, lambda some: np.ones(len(some), np.bool_), lambda _: None)
    for place in range(0, 9_000, 100):
        lists.add(np.arange(place, place + 100, dtype=np.int32), rows[place : place + 100])

    assert len(lists) > 4
    assert max(read) <= bit_lists.LONGEST + 100
    assert sum(read) < 6 * 9_000


@pytest.mark.parametrize("vectors", [np.ones((3_000, D), np.float32), np.zeros((3_000, D), np.float32)])
async def test_vectors_that_are_all_alike_are_split_and_found(vectors: Floats) -> None:
    index = CompressedIndex(D, exact_up_to=500)
    await index.add(IDS[:3_000], vectors)

    (found,) = await index.search(vectors[:1], 50)
    assert [tool for tool, _ in found] == [tool for tool, _ in (await index.search(vectors[:1], 50))[0]]
    assert len(found) == 50


@pytest.mark.requirement("029.index")
async def test_a_filter_that_leaves_a_small_part_has_its_own_rows_compared_and_no_list(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    rows = clustered(7, len(IDS) + 20)
    index, oracle = CompressedIndex(D, exact_up_to=100, probes=6), ExactIndex(D)
    monkeypatch.setattr(bit_index, "BY_BITS", 200)
    await index.add(IDS, rows[: len(IDS)])
    await index.remove(IDS[::7])
    kept = [place for place in range(len(IDS)) if place % 7]
    oracle.add([IDS[place] for place in kept], rows[kept])
    few = Filter(servers=frozenset({"server 3", "server 8", "server 21"}), excluded=frozenset(IDS[3:2_000:50]))

    def none(*_: object) -> None:
        raise AssertionError("lists are read")

    monkeypatch.setattr(BitLists, "differing", none)

    found, best = await index.search(rows[len(IDS) :], 10, few), oracle.search(rows[len(IDS) :], 10, few)

    shares = [len(dict(got).keys() & dict(all_).keys()) / len(all_) for got, all_ in zip(found, best, strict=True)]
    assert np.mean(shares) >= 0.95
    assert all(few.passes(tool) for row in found for tool, _ in row)


def test_without_numpys_own_count_bits_are_counted_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    bits = np.random.default_rng(0).integers(0, 2**63, (6, 100), np.uint64)
    expected = [[number.bit_count() for number in row] for row in bits.tolist()]
    assert bit_lists.counted(bits).tolist() == expected

    monkeypatch.delattr(np, "bitwise_count", raising=False)

    assert bit_lists.counted(bits).tolist() == expected
