from __future__ import annotations

import asyncio

import numpy as np

from backends import Backend
from pegboard.model import Floats


def vectors(count: int, start: int = 0) -> dict[str, Floats]:
    return {f"key {number}": np.full(16, number, np.float32) for number in range(start, start + count)}


async def test_vectors_come_back_bit_by_bit_in_another_process_too(backend: Backend) -> None:
    put = {"a": np.array([1.5, -2.25, np.float32(1) / 3, 1e-42], np.float32), "é/世": np.zeros(0, np.float32)}

    await backend.embeddings().put(put)
    found = await backend.embeddings().get(["é/世", "a", "a", "missing"])

    assert found.keys() == put.keys()
    assert all((found[key] == put[key]).all() and found[key].dtype == np.float32 for key in put)


async def test_a_new_vector_replaces_the_old_one(backend: Backend) -> None:
    store = backend.embeddings()

    await store.put(vectors(1))
    await store.put({"key 0": np.ones(16, np.float32)})

    assert (await store.get(["key 0"]))["key 0"].tolist() == [1.0] * 16


async def test_a_batch_may_be_large(backend: Backend) -> None:
    store = backend.embeddings()

    await store.put(vectors(2_503))
    found = await store.get(list(vectors(2_600)))

    assert len(found) == 2_503
    assert found["key 2502"][0] == 2_502


async def test_nothing_is_asked_and_nothing_is_put_without_harm(backend: Backend) -> None:
    await backend.embeddings().put({})

    assert await backend.embeddings().get([]) == {}


async def test_many_tasks_may_put_the_same_keys_in_any_order(backend: Backend) -> None:
    forwards = vectors(40)
    backwards = dict(reversed(forwards.items()))
    stores = [backend.embeddings() for _ in range(4)]

    await asyncio.gather(*(stores[n % 4].put((forwards, backwards)[n % 2]) for n in range(12)))

    assert len(await stores[0].get(list(forwards))) == 40
