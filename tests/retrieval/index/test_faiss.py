from __future__ import annotations

import sys

import numpy as np
import pytest

from pegboard import ToolId
from pegboard.compose import default_parts
from pegboard.errors import ConfigError
from pegboard.model import Floats
from pegboard.protocols import Filter
from pegboard.retrieval.index.exact import ExactIndex
from pegboard.retrieval.index.faiss import FaissIndex
from pegboard.settings import Settings
from pegboard.testing import FakeEncoder

D = 32
IDS = [ToolId(f"server {number % 50}", f"tool {number}") for number in range(5_000)]


def clustered(seed: int, count: int) -> Floats:
    """As vectors of tools are: near to some, far from most."""
    draw = np.random.default_rng(seed)
    centres = draw.normal(size=(200, D))
    rows = centres[draw.integers(0, len(centres), count)] + 0.5 * draw.normal(size=(count, D))
    return np.asarray(rows / np.linalg.norm(rows, axis=1, keepdims=True), np.float32)


def test_without_the_package_the_error_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "faiss", None)

    with pytest.raises(ConfigError, match=r"pegboard\[faiss\]"):
        default_parts(Settings(index="faiss"), encoder=FakeEncoder()).index("")


@pytest.mark.requirement("design.index-recall")
@pytest.mark.parametrize("where", [None, Filter(servers=frozenset({"server 3"})), Filter(excluded=frozenset(IDS[::3]))])
async def test_beyond_a_size_nearly_all_is_found_that_an_exact_search_finds(where: Filter | None) -> None:
    rows = clustered(1, len(IDS) + 50)
    index, oracle = FaissIndex(D, approximate_above=1_000), ExactIndex(D)
    await index.add(IDS, rows[: len(IDS)])
    oracle.add(IDS, rows[: len(IDS)])

    found = await index.search(rows[len(IDS) :], 10, where)
    best = oracle.search(rows[len(IDS) :], 10, where)

    shares = [len(dict(got).keys() & dict(all_).keys()) / len(all_) for got, all_ in zip(found, best, strict=True)]
    assert np.mean(shares) >= 0.98


async def test_lists_are_learnt_anew_as_vectors_come_and_none_is_lost() -> None:
    rows = clustered(2, len(IDS))
    index = FaissIndex(D, approximate_above=500)
    for start in range(0, len(IDS), 700):
        await index.add(IDS[start : start + 700], rows[start : start + 700])
    await index.remove(IDS[:100])

    assert await index.ids() == set(IDS[100:])
    (everything,) = await index.search(rows[:1], len(IDS))
    assert {tool for tool, _ in everything} == set(IDS[100:])
    assert index.lists > 1


async def test_a_vector_that_is_there_already_costs_no_row(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = clustered(3, 20)
    index = FaissIndex(D)
    await index.add(IDS[:20], rows)
    monkeypatch.setattr(index, "_remove", lambda ids: pytest.fail(f"replaced {ids}"))

    await index.add(IDS[:20], rows)

    assert len(await index.ids()) == 20


async def test_without_a_width_that_of_the_first_vectors_counts() -> None:
    rows = clustered(4, 20)
    index = FaissIndex()
    assert await index.search(rows[:1], 3) == [[]]
    await index.remove(IDS[:1])

    await index.add(IDS[:20], rows)
    await index.remove(IDS[1:20])

    assert [tool for tool, _ in (await index.search(rows[:1], 3))[0]] == IDS[:1]
