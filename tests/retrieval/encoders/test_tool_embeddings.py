from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pegboard.model import Floats
from pegboard.retrieval import CachedEncoder
from pegboard.retrieval.encoders.embedding_caches import ToolEmbeddings
from pegboard.testing import FakeEncoder

keys = st.lists(st.sampled_from("abcdefgh"), max_size=6, unique=True)
operations = st.lists(
    st.tuples(st.sampled_from(["get", "put"]), st.sampled_from(["chat", "code", "mail"]), keys), max_size=20
)


def made(names: list[str]) -> dict[str, Floats]:
    return {name: np.array([ord(name)], np.float32) for name in names}


@pytest.mark.requirement("003.cache-eviction")
@given(apis=st.integers(1, 3), tools=st.integers(1, 5), operations=operations)
async def test_no_sequence_of_uses_breaks_a_limit_or_gives_a_vector_that_was_not_stored(
    apis: int, tools: int, operations: list[tuple[str, str, list[str]]]
) -> None:
    cache = ToolEmbeddings(apis=apis, tools=tools)
    for operation, api, names in operations:
        if operation == "put":
            await cache.of(api).put(made(names))
        else:
            found = await cache.of(api).get(names)
            assert all(found[name] == ord(name) for name in found)
            assert found.keys() <= set(names)
        assert len(cache) <= apis * tools


@pytest.mark.requirement("003.cache-eviction")
@given(tools=st.integers(1, 6), before=keys, used=keys, batch=keys)
async def test_a_batch_never_evicts_what_was_just_used(
    tools: int, before: list[str], used: list[str], batch: list[str]
) -> None:
    shelf = ToolEmbeddings(tools=tools).of("chat")
    await shelf.put(made(before))
    await shelf.put({})
    there = set(await shelf.get(used))

    await shelf.put(made(batch))

    assert there <= set(await shelf.get(used))


@pytest.mark.requirement("003.cache-eviction")
@given(tools=st.integers(1, 6), before=keys, used=keys, batch=keys)
async def test_of_a_batch_as_much_is_stored_as_fits_beside_what_was_just_used(
    tools: int, before: list[str], used: list[str], batch: list[str]
) -> None:
    shelf = ToolEmbeddings(tools=tools).of("chat")
    await shelf.put(made(before))
    await shelf.put({})
    there = set(await shelf.get(used))
    left = set(before[:tools])
    await shelf.put(made(batch))

    new = [name for name in batch if name not in left]
    kept = there | (set(batch) & left)
    assert set(await shelf.get(batch)) == (set(batch) & left) | set(new[: tools - len(kept)])


@pytest.mark.requirement("003.cache-eviction")
async def test_the_least_recently_used_tools_of_an_api_leave_first() -> None:
    shelf = ToolEmbeddings(tools=3).of("chat")
    await shelf.put(made(["a", "b", "c"]))
    await shelf.put({})
    await shelf.get(["a"])

    await shelf.put(made(["d"]))

    assert set(await shelf.get(["a", "b", "c", "d"])) == {"a", "c", "d"}


@pytest.mark.requirement("003.cache-eviction")
async def test_the_least_recently_used_api_leaves_with_all_its_tools() -> None:
    cache = ToolEmbeddings(apis=2)
    for api in ("chat", "code"):
        await cache.of(api).put(made(["a"]))
    await cache.of("chat").get(["a"])

    await cache.of("mail").put(made(["a"]))

    assert [len(await cache.of(api).get(["a"])) for api in ("chat", "mail")] == [1, 1]
    assert len(await cache.of("code").get(["a"])) == 0


@pytest.mark.requirement("003.cache-eviction")
async def test_tools_of_one_api_take_no_place_of_anothers() -> None:
    cache = ToolEmbeddings(tools=2)
    await cache.of("chat").put(made(["a", "b"]))

    await cache.of("code").put(made(["c", "d", "e"]))

    assert set(await cache.of("chat").get(["a", "b"])) == {"a", "b"}


@pytest.mark.requirement("003.cache-eviction")
async def test_more_tools_than_fit_keep_a_part_of_them_from_request_to_request() -> None:
    encoder = FakeEncoder()
    texts = [f"tool {number}" for number in range(12)]
    cached = CachedEncoder(encoder, ToolEmbeddings(tools=8).of("chat"))
    for _ in range(3):
        await cached.encode(texts)

    assert encoder.encoded == texts + texts[8:] + texts[8:]


async def test_a_vector_keeps_no_batch_in_memory_that_it_came_with() -> None:
    shelf = ToolEmbeddings().of("chat")
    batch = np.ones((100, 4), np.float32)

    await shelf.put({"a": batch[0]})

    assert (await shelf.get(["a"]))["a"].base is None
