from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import pytest

from pegboard.activity_entries import ActivityQuery
from pegboard.stores import SqliteActivity
from pegboard_bench.observability.behind import AT_ONCE, activity_cpu_us
from pegboard_bench.observability.paired_rounds import Burst, compared, median_interval, shuffled_rounds

NAMES = ("off", "control", "on", "otel")


def burst(rate: float, took: float = 2.0, cpu: float = 3.0) -> Burst:
    return Burst(took=[took], rate=rate, cpu=cpu, exporter=0.25, writer=0.5)


def test_a_gateway_loses_the_median_of_rounds_to_the_mean_of_both_plain_ones() -> None:
    found = {
        "off": [burst(90.0), burst(180.0), burst(90.0)],
        "control": [burst(110.0), burst(220.0), burst(110.0)],
        "on": [burst(99.0, 2.5, 3.5), burst(196.0, 3.0, 3.5), burst(91.0, 4.0, 3.5)],
    }

    lost, added = compared(found, "on", clients=8), compared(found, "on", clients=1)

    assert lost["requests_a_second"] == 100.0
    assert [round(lost[f"requests_lost_percent{end}"], 6) for end in ("_low", "", "_high")] == [1.0, 2.0, 9.0]
    assert (lost["cpu_ms"], lost["cpu_added_ms"]) == (3.0, 0.5)
    assert (lost["exporter_cpu_ms"], lost["writer_cpu_ms"]) == (0.25, 0.5)
    assert (added["p50_ms"], added["p50_added_ms"]) == (2.0, 1.0)


def test_what_the_control_loses_to_the_other_plain_gateway_is_the_noise() -> None:
    found = {"off": [burst(100.0)] * 4, "control": [burst(98.0), burst(102.0)] * 2}

    lost = compared(found, "control", clients=8)

    assert lost["requests_lost_percent"] == pytest.approx(0.0)
    assert lost["requests_lost_percent_low"] < 0 < lost["requests_lost_percent_high"]


def test_every_round_has_each_gateway_once_in_an_order_of_its_own() -> None:
    rounds = list(shuffled_rounds(NAMES, 60, seed=0))

    assert {frozenset(order) for order in rounds} == {frozenset(NAMES)}
    assert {len(order) for order in rounds} == {len(NAMES)}
    followed = {pair for order in rounds for pair in pairwise(order)}
    assert len(followed) == len(NAMES) * (len(NAMES) - 1)
    assert list(shuffled_rounds(NAMES, 60, seed=0)) == rounds


def test_more_rounds_make_the_interval_of_the_median_narrower() -> None:
    few, many = (median_interval("lost", [float(value) for value in range(10)] * times) for times in (1, 20))

    assert few["lost_low"] < many["lost_low"] <= many["lost"] <= many["lost_high"] < few["lost_high"]


def test_what_differs_between_starts_makes_the_interval_wide_however_many_rounds_there_are() -> None:
    of_starts = [1.0] * 30 + [5.0] * 30 + [9.0] * 30

    by_round, by_start = median_interval("lost", of_starts), median_interval("lost", of_starts, starts=3)

    assert by_round["lost"] == by_start["lost"] == 5.0
    assert (by_round["lost_low"], by_round["lost_high"]) == (5.0, 5.0)
    assert (by_start["lost_low"], by_start["lost_high"]) == (1.0, 9.0)


async def test_the_activity_that_is_timed_by_itself_is_stored(tmp_path: Path) -> None:
    assert await activity_cpu_us(tmp_path, 2) > 0

    store = SqliteActivity(tmp_path / "behind.sqlite")
    kept = await store.find(ActivityQuery(), 999)
    store.close()
    assert len(kept) == 2 * AT_ONCE
    assert {(len(entry.ranked), entry.missed) for entry in kept} == {(20, ())}
