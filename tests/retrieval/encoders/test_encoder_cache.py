from __future__ import annotations

import asyncio
from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pegboard.errors import EncoderError
from pegboard.model import Floats
from pegboard.retrieval.encoders.encoder_cache import CachedEncoder, embedding_key
from pegboard.stores import MemoryEmbeddings
from pegboard.testing import FakeEncoder


class GatedEncoder(FakeEncoder):
    """Answers for a text only once its gate is open."""

    def __init__(self, *closed: str) -> None:
        super().__init__()
        self.gates = {text: asyncio.Event() for text in closed}
        self.asked = asyncio.Event()

    async def encode(self, texts: Sequence[str]) -> Floats:
        vectors = await super().encode(texts)
        self.asked.set()
        for text in texts:
            if text in self.gates:
                await self.gates[text].wait()
        return vectors


@pytest.mark.requirement("M4")
async def test_a_text_is_encoded_once_however_often_it_is_asked_for() -> None:
    encoder = FakeEncoder()
    cached = CachedEncoder(encoder, MemoryEmbeddings())

    first = await cached.encode(["tides", "forecast", "tides"])
    again = await cached.encode(["forecast", "tides"])

    assert encoder.encoded == ["tides", "forecast"]
    np.testing.assert_array_equal(first, np.stack([again[1], again[0], again[1]]))


@pytest.mark.requirement("M4")
async def test_a_reconnect_storm_encodes_every_text_once() -> None:
    encoder = FakeEncoder()
    cached = CachedEncoder(encoder, MemoryEmbeddings())
    texts = [f"tool {number}" for number in range(20)]

    answers = await asyncio.gather(*(cached.encode(texts[start:] + texts[:start]) for start in range(20)))

    assert sorted(encoder.encoded) == sorted(texts)
    assert all((np.roll(answer, start, axis=0) == answers[0]).all() for start, answer in enumerate(answers))


@pytest.mark.requirement("M4")
async def test_another_process_with_the_same_store_encodes_nothing_again() -> None:
    store, second = MemoryEmbeddings(), FakeEncoder()
    await CachedEncoder(FakeEncoder(), store).encode(["tides"])

    await CachedEncoder(second, store).encode(["tides"])

    assert second.encoded == []


@pytest.mark.requirement("P25")
async def test_one_slow_text_never_stalls_another() -> None:
    encoder = GatedEncoder("slow")
    cached = CachedEncoder(encoder, MemoryEmbeddings())
    slow = asyncio.create_task(cached.encode(["slow"]))
    await encoder.asked.wait()

    await cached.encode(["quick"])

    assert not slow.done()
    encoder.gates["slow"].set()
    assert (await slow).shape == (1, encoder.dimensions)


async def test_a_caller_that_gives_up_takes_nothing_from_others_who_wait_for_the_same_text() -> None:
    encoder = GatedEncoder("slow")
    cached = CachedEncoder(encoder, MemoryEmbeddings())
    gives_up = asyncio.create_task(cached.encode(["slow"]))
    await encoder.asked.wait()
    waits = asyncio.create_task(cached.encode(["slow"]))
    await asyncio.sleep(0)

    gives_up.cancel()
    encoder.gates["slow"].set()

    assert (await waits).shape == (1, encoder.dimensions)
    assert gives_up.cancelled()
    assert encoder.encoded == ["slow"]


async def test_a_failure_reaches_everybody_who_waits_and_is_not_remembered() -> None:
    encoder = FakeEncoder(broken=True)
    cached = CachedEncoder(encoder, MemoryEmbeddings())

    failures = await asyncio.gather(*(cached.encode(["tides"]) for _ in range(3)), return_exceptions=True)
    encoder.broken = False

    assert [type(failure) for failure in failures] == [EncoderError] * 3
    assert (await cached.encode(["tides"])).shape == (1, encoder.dimensions)


def test_one_encoder_serves_several_event_loops_one_after_the_other() -> None:
    encoder = FakeEncoder()
    cached = CachedEncoder(encoder, MemoryEmbeddings())

    async def together() -> None:
        await asyncio.gather(*(cached.encode(["tides", str(number % 3)]) for number in range(9)))

    for _ in range(3):
        asyncio.run(together())

    assert sorted(encoder.encoded) == ["0", "1", "2", "tides"]


async def test_no_texts_give_no_rows() -> None:
    assert (await CachedEncoder(FakeEncoder(), MemoryEmbeddings()).encode([])).shape == (0, 256)


async def test_it_has_the_space_of_what_it_caches() -> None:
    encoder = FakeEncoder(32)
    cached = CachedEncoder(encoder, MemoryEmbeddings())

    assert (cached.provider, cached.model, cached.dimensions) == ("fake", "bag-of-words", 32)


async def test_a_store_that_is_smaller_than_a_batch_costs_time_but_no_answer() -> None:
    cached = CachedEncoder(FakeEncoder(), MemoryEmbeddings(capacity=2))

    assert (await cached.encode([f"tool {number}" for number in range(10)])).shape == (10, 256)


@pytest.mark.requirement("003.cache-key", "P16", "P17")
def test_provider_model_and_text_all_matter_to_the_key() -> None:
    keys = {
        embedding_key("a", "b", "c"),
        embedding_key("x", "b", "c"),
        embedding_key("a", "x", "c"),
        embedding_key("a", "b", "x"),
        embedding_key("ab", "", "c"),
        embedding_key("", "ab", "c"),
        embedding_key("a", "bc", ""),
    }

    assert len(keys) == 7
    assert all(len(key) == 64 for key in keys)


@pytest.mark.requirement("003.cache-key")
@given(first=st.tuples(*[st.text(max_size=4)] * 3), second=st.tuples(*[st.text(max_size=4)] * 3))
def test_two_keys_are_equal_exactly_when_all_three_parts_are(
    first: tuple[str, str, str], second: tuple[str, str, str]
) -> None:
    assert (embedding_key(*first) == embedding_key(*second)) == (first == second)


def test_text_that_is_not_valid_unicode_has_a_key_of_its_own() -> None:
    assert embedding_key("a", "b", "\ud83d") != embedding_key("a", "b", "?")


class ClauseFake(FakeEncoder):
    """Sees clauses in their text, and counts how often it is asked."""

    def __init__(self) -> None:
        super().__init__()
        self.texts: list[str] = []

    async def encode_clauses(self, text: str, spans: Sequence[tuple[int, int]]) -> Floats:
        self.texts.append(text)
        return await FakeEncoder().encode([text, *(text[start:end] for start, end in spans)])


SPANS = [(0, 5), (7, 15)]


async def test_a_text_and_its_clauses_are_encoded_once() -> None:
    encoder = ClauseFake()
    cached = CachedEncoder(encoder, MemoryEmbeddings())

    first, again = [await cached.encode_clauses("tides; bicycles", SPANS) for _ in range(2)]

    np.testing.assert_array_equal(first, again)
    assert first.shape == (3, encoder.dimensions)
    assert encoder.texts == ["tides; bicycles"]
    assert encoder.encoded == []


async def test_a_clause_in_its_text_is_not_the_same_words_alone() -> None:
    encoder = ClauseFake()
    cached = CachedEncoder(encoder, MemoryEmbeddings())
    await cached.encode_clauses("tides; bicycles", SPANS)

    await cached.encode(["tides"])

    assert encoder.encoded == ["tides"]


async def test_an_encoder_that_cannot_see_clauses_encodes_them_as_texts() -> None:
    encoder = FakeEncoder()

    vectors = await CachedEncoder(encoder, MemoryEmbeddings()).encode_clauses("tides; bicycles", SPANS)

    np.testing.assert_array_equal(vectors, await FakeEncoder().encode(["tides; bicycles", "tides", "bicycles"]))


async def test_two_clauses_of_the_same_words_need_one_run_only() -> None:
    encoder = ClauseFake()
    cached = CachedEncoder(encoder, MemoryEmbeddings())
    for _ in range(2):
        await cached.encode_clauses("tides", [(0, 5), (0, 5)])

    assert encoder.texts == ["tides"]
