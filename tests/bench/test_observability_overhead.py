from __future__ import annotations

from pathlib import Path

from pegboard.activity_entries import ActivityQuery
from pegboard.stores import SqliteActivity
from pegboard_bench.observability.behind import AT_ONCE, activity_cpu_us
from pegboard_bench.observability.overhead import Burst, compared


def test_what_a_gateway_loses_is_the_median_of_rounds_with_its_quartiles() -> None:
    off = [Burst(took=[2.0], rate=100.0, cpu=3.0, exporter=0.0)] * 3
    on = [
        Burst(took=[2.0 + added], rate=100.0 - lost, cpu=3.5, exporter=0.25) for added, lost in ((0, 1), (1, 2), (2, 9))
    ]

    lost, added = compared(off, on, clients=8), compared(off, on, clients=1)

    assert [round(lost[f"requests_lost_percent{end}"], 6) for end in ("_q1", "", "_q3")] == [1.0, 2.0, 9.0]
    assert (lost["cpu_added_ms"], lost["exporter_cpu_ms"]) == (0.5, 0.25)
    assert (added["p50_added_ms"], added["p50_ms"]) == (1.0, 2.0)


async def test_the_activity_that_is_timed_by_itself_is_stored(tmp_path: Path) -> None:
    assert await activity_cpu_us(tmp_path, 2) > 0

    store = SqliteActivity(tmp_path / "behind.sqlite")
    kept = await store.find(ActivityQuery(), 999)
    store.close()
    assert len(kept) == 2 * AT_ONCE
    assert {(len(entry.scores), entry.missed) for entry in kept} == {(20, ())}
