"""What use taught, on every backend: additions join and fade, whoever makes them."""

from __future__ import annotations

import asyncio
from contextlib import nullcontext
from uuid import uuid4

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from backends import Backend
from pegboard.errors import ValueRefused
from pegboard.habits import HALF_LIFE, Habit, HabitKey
from pegboard.model import Floats
from pegboard.testing import FakeClock

LOG, NOW = HabitKey("ann:1", "git", "log"), HabitKey("ann:1", "time", "now")
OTHER = HabitKey("ann:12", "git", "log")
vectors = st.lists(st.floats(-8, 8, width=32), min_size=3, max_size=3).map(lambda each: np.array(each, np.float32))


def sums(*values: float) -> Floats:
    return np.array(values, np.float32)


async def test_of_keys_that_nothing_was_added_to_nothing_is_known(backend: Backend) -> None:
    await backend.habits().add({LOG: sums(1, 2)})

    assert await backend.habits().read(["ann:", "ann:12", "ann"]) == {}
    assert await backend.habits().read([]) == {}


async def test_a_key_has_its_own_rows_and_no_others(backend: Backend) -> None:
    await backend.habits().add({LOG: sums(1, 2), NOW: sums(3, 4), OTHER: sums(5, 6)})

    found = await backend.habits().read(["ann:1", "ann:1"])

    assert {key: habit.sums.tolist() for key, habit in found.items()} == {LOG: [1, 2], NOW: [3, 4]}


async def test_what_was_added_a_half_life_ago_counts_half(backend: Backend, clock: FakeClock) -> None:
    await backend.habits().add({LOG: sums(4, -2)})
    clock.advance(HALF_LIFE)

    await backend.habits().add({LOG: sums(1, 1)})

    [habit] = (await backend.habits().read(["ann:1"])).values()
    assert (habit.sums.tolist(), habit.used) == ([3, 0], clock.time())


async def test_where_a_name_is_refused_none_is_added(backend: Backend) -> None:
    """Memory keeps every name."""
    rows = {HabitKey("ann:1", "git", f"tool{number}"): sums(1) for number in range(120)}
    with pytest.raises(ValueRefused) if backend.lasts else nullcontext():
        await backend.habits().add(rows | {HabitKey("ann:1", "git", "\ud800"): sums(1)})

    assert len(await backend.habits().read(["ann:1"])) == (0 if backend.lasts else 121)


async def test_sums_of_another_width_replace_those_that_are_there(backend: Backend) -> None:
    await backend.habits().add({LOG: sums(4, -2)})
    await backend.habits().add({LOG: sums(1, 2, 3)})

    [habit] = (await backend.habits().read(["ann:1"])).values()
    assert habit.sums.tolist() == [1, 2, 3]


@settings(max_examples=20, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(parts=st.lists(vectors, min_size=1, max_size=4), pause=st.floats(0, 5 * HALF_LIFE))
async def test_any_sums_are_joined_as_the_formula_says(
    backend: Backend, clock: FakeClock, parts: list[Floats], pause: float
) -> None:
    key, expected = HabitKey(uuid4().hex, "git", "log"), None
    for part in parts:
        await backend.habits().add({key: part})
        now = clock.time()
        expected = Habit(sums=part, used=now) if expected is None else expected.joined(part, now)
        clock.advance(pause)

    assert expected is not None
    found = (await backend.habits().read([key.key]))[key]
    np.testing.assert_allclose(found.sums, expected.sums, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("additions", [40])
async def test_concurrent_additions_all_count(backend: Backend, additions: int) -> None:
    stores = [backend.habits() for _ in range(4)]

    await asyncio.gather(*(stores[each % 4].add({LOG: sums(1), NOW: sums(2)}) for each in range(additions)))

    found = await backend.habits().read(["ann:1"])
    assert {key: habit.sums.tolist() for key, habit in found.items()} == {LOG: [additions], NOW: [2 * additions]}
