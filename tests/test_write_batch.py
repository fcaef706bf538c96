"""Batches of which a store refuses a value."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from pegboard import write_batch as write_batches
from pegboard.errors import StoreError, ValueRefused
from pegboard.write_batch import write_batch


class Numbers:
    """A store that refuses negative numbers, and cannot be reached for zero."""

    def __init__(self) -> None:
        self.kept: list[int] = []
        self.calls = 0

    async def add(self, numbers: Sequence[int]) -> None:
        self.calls += 1
        if 0 in numbers:
            raise StoreError("It does not answer.", remedy="Wait.")
        if any(each < 0 for each in numbers):
            raise ValueRefused("It is negative.", remedy="Check the value.")
        self.kept += numbers

    async def add_one_by_one(self, numbers: Sequence[int]) -> None:
        """It refuses whatever is more than one."""
        if len(numbers) > 1:
            raise ValueRefused("They are several.", remedy="Send one.")
        await self.add(numbers)


async def test_values_that_a_store_keeps_are_one_call() -> None:
    store = Numbers()

    assert await write_batch([1, 2, 3], store.add) == []
    assert (store.kept, store.calls) == ([1, 2, 3], 1)


async def test_many_values_are_written_in_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(write_batches, "MOST", 4)
    store, sizes = Numbers(), list[int]()

    async def write(numbers: list[int]) -> None:
        sizes.append(len(numbers))
        await store.add(numbers)

    assert await write_batch([*range(1, 11), -1], write) == [-1]
    assert store.kept == [*range(1, 11)]
    assert sizes[:2] == [4, 4]
    assert max(sizes) == 4


@pytest.mark.parametrize("bad", [[], [-1], [-1, -2], [-1, -9], [-9], list(range(-9, 0))])
async def test_what_is_refused_keeps_no_other_value_from_being_stored(bad: list[int]) -> None:
    store = Numbers()
    values = sorted([*range(1, 8), *bad], key=abs)

    assert sorted(await write_batch(values, store.add)) == sorted(bad)
    assert (store.kept, values) == (list(range(1, 8)), [])


async def test_one_bad_value_of_many_takes_few_calls() -> None:
    store = Numbers()
    await write_batch([*range(1, 1_000), -1], store.add)

    assert store.calls <= 21


async def test_a_store_that_cannot_be_reached_is_no_refusal() -> None:
    with pytest.raises(StoreError, match="does not answer"):
        await write_batch([1, 0], Numbers().add)


async def test_what_was_stored_or_refused_before_the_store_went_away_is_not_written_again() -> None:
    store = Numbers()
    waiting = [1, 2, -1, 3, 4, 0]
    with pytest.raises(StoreError, match="does not answer"):
        await write_batch(waiting, store.add_one_by_one)

    assert (store.kept, waiting) == ([1, 2, 3, 4], [0])
