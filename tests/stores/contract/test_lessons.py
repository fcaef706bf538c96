from __future__ import annotations

import asyncio
from collections.abc import Iterable
from dataclasses import astuple
from functools import reduce

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from backends import Backend
from pegboard.traffic import MOST, Seen, Turned

BEGUN = Seen().after(Turned(first=True, ahead=100 / 3, wanted=900.1, kept=True))
GONE_ON = Seen().after(Turned(first=False, ahead=501.7, wanted=400.3, added=120.9, called=1 / 7, changed=True))

counts = st.floats(0, 1e6)
sums = st.builds(Seen, **dict.fromkeys(("requests", "conversations", "later", "asked", "growth", "alike"), counts))


def joined(parts: Iterable[Seen]) -> Seen:
    return reduce(Seen.joined, parts, Seen())


async def test_of_keys_that_nothing_was_added_to_nothing_is_known(backend: Backend) -> None:
    store = backend.lessons()
    await store.add({"one": BEGUN})

    assert await store.read(["other", "on"]) == {}
    assert await store.read([]) == {}
    assert await store.read(["other", "one", "one"]) == {"one": BEGUN}


async def test_what_is_added_is_joined_to_what_is_there(backend: Backend) -> None:
    for added in ({"one": BEGUN, "two": GONE_ON}, {"one": GONE_ON}, {}, {"one": BEGUN}):
        await backend.lessons().add(added)

    assert await backend.lessons().read(["one", "two"]) == {"one": joined([BEGUN, GONE_ON, BEGUN]), "two": GONE_ON}


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(parts=st.lists(sums, min_size=1, max_size=4), number=st.uuids())
async def test_any_sums_are_joined_bit_for_bit_as_in_memory(
    backend: Backend, parts: list[Seen], number: object
) -> None:
    store, key = backend.lessons(), str(number)
    before = await store.read([key])
    for part in parts:
        await store.add({key: part})

    assert (await store.read([key]))[key] == reduce(Seen.joined, parts, before.get(key, Seen()))


@pytest.mark.parametrize("conversations", [MOST - 1, MOST, MOST + 0.5])
async def test_what_is_long_ago_counts_half_once_there_is_enough(backend: Backend, conversations: float) -> None:
    known, store = Seen(requests=5_001, conversations=conversations, growth=1e7, alike=0.1), backend.lessons()
    await store.add({"one": known})

    await store.add({"one": BEGUN})

    weight = 1 if conversations < MOST else 0.5
    found = (await store.read(["one"]))["one"]
    assert (found.conversations, found.requests) == (weight * conversations + 1, weight * 5_001 + 1)
    assert found == known.joined(BEGUN)


async def test_keys_of_any_script_and_with_any_sign_are_told_apart(backend: Backend) -> None:
    keys = ["a", "A", "a b", "a:b", "世界", 'né "e" \'\\', "%s"]
    store = backend.lessons()

    await store.add({key: Seen(requests=float(number)) for number, key in enumerate(keys)})

    assert {key: seen.requests for key, seen in (await store.read(keys)).items()} == {
        key: number for number, key in enumerate(keys)
    }


async def test_more_keys_than_a_batch_are_added_and_read_at_once(backend: Backend) -> None:
    many = {f"{number:04}": Seen(requests=float(number)) for number in range(1_203)}
    store = backend.lessons()

    await store.add(many)

    assert await store.read(list(many)) == many


@pytest.mark.parametrize(("tasks", "adds"), [(8, 25), (64, 40)])
async def test_no_turn_of_many_tasks_is_lost(backend: Backend, tasks: int, adds: int) -> None:
    """All that is added to a key is alike, so that every order of it gives the same sums; some are halved on the way.

    Tasks name the keys in opposite orders: nobody may wait for somebody who waits for him.
    """
    stores = [backend.lessons() for _ in range(4)]
    parts = {
        "begun": Seen(requests=7.0, conversations=3.0, asked=100 / 3),
        "gone on": GONE_ON,
    }

    async def talks(task: int) -> None:
        for number in range(adds):
            order = sorted(parts, reverse=(task + number) % 2 == 0)
            await stores[task % 4].add({key: parts[key] for key in order})

    async with asyncio.timeout(120):
        await asyncio.gather(*map(talks, range(tasks)))

    found = await stores[0].read(list(parts))
    for key, part in parts.items():
        assert astuple(found[key]) == pytest.approx(astuple(joined([part] * (tasks * adds))), rel=1e-9)
    assert found["gone on"].requests == tasks * adds
