from __future__ import annotations

import sys
import threading
from collections import OrderedDict
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pegboard.events import CallFinished, CallRejected
from pegboard.stores import MemoryEmbeddings, MemoryEvents, MemoryLessons
from pegboard.traffic import Seen
from processes import eventually

keys = st.lists(st.sampled_from("abcdefgh"), max_size=4)


@given(capacity=st.integers(1, 5), operations=st.lists(st.tuples(st.sampled_from(["get", "put"]), keys), max_size=15))
async def test_the_least_recently_used_vectors_leave_first(
    capacity: int, operations: list[tuple[str, list[str]]]
) -> None:
    store, model = MemoryEmbeddings(capacity), OrderedDict[str, int]()
    for number, (operation, wanted) in enumerate(operations):
        if operation == "get":
            found = await store.get(wanted)
            assert {key: int(vector[0]) for key, vector in found.items()} == {
                key: model[key] for key in wanted if key in model
            }
        else:
            await store.put({key: np.array([number], np.float32) for key in wanted})
            model |= dict.fromkeys(wanted, number)
        for key in dict.fromkeys(wanted):
            if key in model:
                model.move_to_end(key)
        while len(model) > capacity:
            model.popitem(last=False)

    assert set(await store.get(list("abcdefgh"))) == set(model)


async def test_a_missing_key_is_missing_from_the_answer() -> None:
    store = MemoryEmbeddings()
    await store.put({"a": np.ones(2, np.float32)})

    assert list(await store.get(["b", "a"])) == ["a"]


def test_the_latest_events_are_kept_and_found_by_kind() -> None:
    events = MemoryEvents(capacity=3)
    for at in range(4):
        events.emit(CallFinished(at=at, tool="walk", success=True, latency_ms=1))
    events.emit(CallRejected(at=9, tool="fly", reason="tool_not_available"))

    assert len(events) == 3
    assert [event.at for event in events.of(CallFinished)] == [2, 3]
    assert [event.at for event in events.of(CallRejected)] == [9]


@pytest.mark.parametrize("order", [["a", "b"], ["b", "a"]])
async def test_a_batch_beyond_the_capacity_keeps_its_end(order: list[str]) -> None:
    store = MemoryEmbeddings(capacity=1)

    await store.put({key: np.zeros(1, np.float32) for key in order})

    assert list(await store.get(["a", "b"])) == order[1:]


async def test_of_more_keys_than_fit_those_that_were_added_to_last_have_lessons() -> None:
    store, turn = MemoryLessons(2), Seen(requests=1.0)
    for key in ("one", "two", "one", "three"):
        await store.add({key: turn})

    assert await store.read(["one", "two", "three"]) == {"one": turn.joined(turn), "three": turn}


def test_events_are_read_while_another_thread_emits() -> None:
    usual = sys.getswitchinterval()
    events = MemoryEvents()
    done = threading.Event()

    def emit() -> None:
        while not done.is_set():
            events.emit(CallFinished(at=0, tool="walk", success=True, latency_ms=1))

    with ThreadPoolExecutor(1) as threads:
        threads.submit(emit)
        sys.setswitchinterval(1e-6)
        try:
            for _ in range(300):
                events.of(CallFinished)
            assert eventually(lambda: len(events.of(CallFinished)) == 1000)
        finally:
            done.set()
            sys.setswitchinterval(usual)
