from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence

import numpy as np
import pytest

from pegboard import Catalog
from pegboard.model import Floats
from pegboard.retrieval import Retriever
from pegboard.retrieval.tool_texts import full, short
from pegboard.testing import FakeEncoder, fake_tool


class CountingEncoder(FakeEncoder):
    """Notes the size of every batch."""

    def __init__(self) -> None:
        super().__init__(32)
        self.batches: list[int] = []

    async def encode(self, texts: Sequence[str]) -> Floats:
        await asyncio.sleep(0)
        self.batches.append(len(texts))
        return await super().encode(texts)


def retriever(catalog: Catalog, encoder: FakeEncoder) -> Retriever:
    return Retriever(catalog.tools, catalog.servers, documents=encoder, queries=encoder)


@pytest.mark.requirement("P24")
async def test_tools_are_embedded_in_batches_of_a_bounded_size(catalog_of: Callable[..., Catalog]) -> None:
    encoder = CountingEncoder()
    catalog = catalog_of(*(fake_tool(f"tool_{number}", "word " * (number % 7)) for number in range(150)))

    index = await retriever(catalog, encoder).dense("definition")

    assert len(index) == 150
    assert max(encoder.batches) <= 64
    assert len(encoder.batches) <= 4


async def test_vectors_stand_in_catalog_order_whatever_order_they_were_embedded_in(
    catalog_of: Callable[..., Catalog],
) -> None:
    encoder = FakeEncoder(32)
    tools = [fake_tool(f"tool_{number}", "long words " * (9 - number)) for number in range(9)]

    index = await retriever(catalog_of(*tools), encoder).dense("definition")

    for place, tool in enumerate(tools):
        vector = (await encoder.encode([f"{tool.name}: {tool.description}"]))[0]
        assert index.similarities(vector)[place] == pytest.approx(1, abs=1e-5)


async def test_turns_that_arrive_together_build_each_index_once(town: Catalog) -> None:
    encoder = CountingEncoder()
    shared = retriever(town, encoder)

    await asyncio.gather(*(shared.dense("definition") for _ in range(5)))
    await asyncio.gather(*(shared.server_similarities(np.ones(32, np.float32)) for _ in range(5)))

    assert len(encoder.encoded) == len(town) + len(town.servers)


async def test_progress_is_told_until_every_tool_is_done(catalog_of: Callable[..., Catalog]) -> None:
    told: list[tuple[int, int]] = []
    catalog = catalog_of(*(fake_tool(f"tool_{number}") for number in range(130)))

    await retriever(catalog, FakeEncoder(8)).dense("summary", lambda done, total: told.append((done, total)))

    assert told == [(64, 130), (128, 130), (130, 130)]


async def test_a_tools_server_similarity_is_that_of_its_own_server(town: Catalog) -> None:
    encoder = FakeEncoder()
    query = (await encoder.encode(["bicycle repairs"]))[0]

    similarities = await retriever(town, encoder).server_similarities(query)

    assert {tool.server for tool, value in zip(town.tools, similarities, strict=True) if value > 0.3} == {"workshop"}
    assert len(set(similarities.tolist())) == len(town.servers)


async def test_it_knows_whether_vectors_are_there_without_waiting(town: Catalog) -> None:
    shared = retriever(town, FakeEncoder())
    before = shared.has_meanings

    await shared.meanings()
    await shared.server_similarities(np.zeros(256, np.float32))

    assert (before, shared.has_meanings) == (False, True)


async def test_a_meaning_is_as_near_to_what_a_tool_is_for_as_to_how_it_does_it(town: Catalog) -> None:
    encoder = FakeEncoder()

    index = await retriever(town, encoder).meanings()

    for place, tool in enumerate(town.tools):
        what, how = await encoder.encode([short(tool), full(tool)])
        assert index.similarities(what)[place] == pytest.approx(index.similarities(how)[place], abs=1e-5)
        assert np.linalg.norm(index.vectors[place]) == pytest.approx(1, abs=1e-5)


async def test_clauses_are_encoded_apart_where_the_encoder_cannot_see_them_in_their_text(town: Catalog) -> None:
    encoder = FakeEncoder()
    text = "tides; bicycles"

    vectors = await retriever(town, encoder).embed_clauses(text, [(0, 5), (7, 15)])

    np.testing.assert_array_equal(vectors, await encoder.encode([text, "tides", "bicycles"]))
