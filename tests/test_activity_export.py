from __future__ import annotations

import csv
import io
import math
from itertools import pairwise

import pytest

from pegboard import activity_export
from pegboard.activity_entries import FIELDS, ActivityEntry, ActivityQuery, ScoredTool, scores_of
from pegboard.activity_export import PAGE, as_csv, as_parquet, decisions
from pegboard.spend_limits import NanoUsd
from pegboard.stores import MemoryActivity


class Counted(MemoryActivity):
    """Counts how many entries each read may have."""

    def __init__(self) -> None:
        super().__init__(most=100_000)
        self.asked: list[int] = []

    async def find(self, query: ActivityQuery, most: int) -> list[ActivityEntry]:
        self.asked.append(most)
        return await super().find(query, most)


def entry(number: int) -> ActivityEntry:
    return ActivityEntry(
        id=f"{number:05}",
        at=float(number // 3),
        door="mcp",
        kind="search",
        key="ann" if number % 2 else "bob",
        scores=scores_of([ScoredTool("git/log", 0.5, True), ScoredTool("git/show", math.nan, False)]),
        called=("git/log", "git/show"),
        cost=NanoUsd(3_000_000_001),
        latency_ms=1.5,
    )


@pytest.mark.parametrize("many", [0, 1, PAGE - 1, PAGE, 2 * PAGE + 1])
async def test_every_decision_is_read_once_the_newest_first_and_few_at_a_time(many: int) -> None:
    store = Counted()
    await store.put([entry(number) for number in range(many)])

    found = [each for page in [page async for page in decisions(store, ActivityQuery())] for each in page]

    assert sorted(each.id for each in found) == [f"{number:05}" for number in range(many)]
    assert all((newer.at, newer.id) > (older.at, older.id) for newer, older in pairwise(found))
    assert max(store.asked) == PAGE
    assert len(store.asked) == many // PAGE + 1


async def test_no_more_are_read_than_are_wanted_and_only_those_of_the_query() -> None:
    store = Counted()
    await store.put([entry(number) for number in range(600)])

    pages = [page async for page in decisions(store, ActivityQuery(key="ann"), PAGE + 5)]

    assert [len(page) for page in pages] == [PAGE, 5]
    assert {each.key for page in pages for each in page} == {"ann"}
    assert store.asked == [PAGE, 5]


async def test_csv_has_a_row_for_each_decision() -> None:
    store = Counted()
    await store.put([entry(number) for number in range(PAGE + 1)])

    text = b"".join([piece async for piece in as_csv(decisions(store, ActivityQuery()))]).decode()

    rows = list(csv.DictReader(io.StringIO(text)))
    assert tuple(rows[0]) == FIELDS
    assert len(rows) == PAGE + 1
    assert rows[-1]["scores"] == "git/log 0.5 offered; git/show nan"


async def test_parquet_keeps_the_types_of_decisions_and_comes_in_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    parquet = pytest.importorskip("pyarrow.parquet")
    monkeypatch.setattr(activity_export, "ROW_GROUP", 2 * PAGE)
    store, many = Counted(), 3 * PAGE + 1
    await store.put([entry(number) for number in range(many)])

    pieces = [piece async for piece in as_parquet(decisions(store, ActivityQuery()))]

    assert len(pieces) == 2
    table = parquet.read_table(io.BytesIO(b"".join(pieces)))
    assert tuple(table.column_names) == FIELDS
    assert table.num_rows == many
    last = table.slice(many - 1).to_pylist()[0]
    assert last["at"].timestamp() == 0.0
    assert math.isnan(last["scores"][1].pop("score"))
    assert last["scores"] == [
        {"name": "git/log", "score": 0.5, "offered": True},
        {"name": "git/show", "offered": False},
    ]
    assert (last["called"], last["cost"], last["latency_ms"]) == (["git/log", "git/show"], 3_000_000_001, 1.5)


async def test_parquet_without_a_decision_has_the_columns() -> None:
    parquet = pytest.importorskip("pyarrow.parquet")

    made = b"".join([piece async for piece in as_parquet(decisions(MemoryActivity(), ActivityQuery()))])

    assert tuple(parquet.read_table(io.BytesIO(made)).column_names) == FIELDS
