from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from pegboard import Catalog
from pegboard.errors import EncoderError
from pegboard.model import Floats
from pegboard.protocols import Encoder
from pegboard.retrieval import RankerKind, Retriever, ranker
from pegboard.retrieval.lexical import Bm25f
from pegboard.testing import FakeEncoder, fake_tool


def retriever(catalog: Catalog, encoder: Encoder) -> Retriever:
    return Retriever(catalog.tools, catalog.servers, documents=encoder, queries=encoder)


def best(catalog: Catalog, values: np.ndarray) -> str:
    return catalog.tools[int(values.argmax())].name


@pytest.mark.requirement("000.eq5")
async def test_the_cosine_ranker_scores_by_the_angle_between_query_and_text(
    catalog_of: Callable[..., Catalog], given_vectors: Callable[..., Encoder]
) -> None:
    catalog = catalog_of(fake_tool("a"), fake_tool("b"), fake_tool("c"))
    encoder = given_vectors({"a": (3, 4), "b": (-1, 0), "c": (0, 2), "query": (5, 0)})

    scores = await ranker("summary_cosine", retriever(catalog, encoder)).score("query")

    np.testing.assert_allclose(scores.values, [0.6, -1, 0], atol=1e-6)
    assert scores.scale == "cosine"
    np.testing.assert_allclose(scores.query_vector, [1, 0])


@pytest.mark.parametrize("kind", ["summary_cosine", "definition_cosine", "keyword", "bm25", "hybrid"])
async def test_every_ranker_finds_the_tool_that_was_asked_for(town: Catalog, kind: RankerKind) -> None:
    scores = await ranker(kind, retriever(town, FakeEncoder())).score("book a repair slot for my bicycle")

    assert best(town, scores.values) == "book_repair"
    assert scores.values.shape == (len(town),)
    assert all(part.shape == (len(town),) for part in scores.parts.values())


@pytest.mark.parametrize(
    ("kind", "scale"),
    [
        ("summary_cosine", "cosine"),
        ("definition_cosine", "cosine"),
        ("keyword", "points"),
        ("bm25", "points"),
        ("hybrid", "probability"),
    ],
)
async def test_every_ranker_says_what_scale_its_scores_are_on(town: Catalog, kind: RankerKind, scale: str) -> None:
    assert (await ranker(kind, retriever(town, FakeEncoder())).score("tides")).scale == scale


@pytest.mark.parametrize("kind", ["summary_cosine", "definition_cosine", "keyword", "bm25", "hybrid"])
async def test_a_warm_ranker_encodes_nothing_but_the_query(town: Catalog, kind: RankerKind) -> None:
    encoder = FakeEncoder()
    warm = ranker(kind, retriever(town, encoder))
    await warm.warm()
    encoder.encoded.clear()

    await warm.score("tides")

    assert encoder.encoded in (["tides"], [])


@pytest.mark.requirement("design.fail-open")
async def test_the_hybrid_falls_back_to_words_when_the_encoder_fails(town: Catalog) -> None:
    scores = await ranker("hybrid", retriever(town, FakeEncoder(broken=True))).score("when is high water")

    assert best(town, scores.values) == "get_tides"
    assert list(scores.parts) == ["bm25", "name"]
    assert scores.query_vector is None


async def test_an_impatient_hybrid_answers_from_words_until_the_tools_are_embedded(town: Catalog) -> None:
    encoder = FakeEncoder()
    impatient = ranker("hybrid", retriever(town, encoder), patient=False)

    early = await impatient.score("when is high water")
    encoded_early = list(encoder.encoded)
    await impatient.warm()
    late = await impatient.score("when is high water")

    assert encoded_early == []
    assert best(town, early.values) == best(town, late.values) == "get_tides"
    assert (list(early.parts), list(late.parts)) == (
        ["bm25", "name"],
        ["cosine", "clause", "server", "bm25", "name", "named"],
    )


async def test_a_patient_hybrid_waits_for_the_tools_to_be_embedded(town: Catalog) -> None:
    scores = await ranker("hybrid", retriever(town, FakeEncoder())).score("when is high water")

    assert list(scores.parts) == ["cosine", "clause", "server", "bm25", "name", "named"]


@pytest.mark.requirement("P5")
async def test_each_clause_of_a_message_brings_up_its_own_tool(
    catalog_of: Callable[..., Catalog], given_vectors: Callable[..., Encoder]
) -> None:
    both = "book the train, mend the bicycle"
    vectors = {both: (1, 1, 1), "book the train": (1, 0, 0), "mend the bicycle": (0, 1, 0)}
    texts = {"fake tickets": (1, 0, 0), "fake repairs": (0, 1, 0), "fake both": (1, 1, 1.2), "fake": (0, 0, 1)}
    catalog = catalog_of(fake_tool("tickets"), fake_tool("repairs"), fake_tool("both"))

    scores = await ranker("hybrid", retriever(catalog, given_vectors(vectors | texts))).score(both)

    np.testing.assert_allclose(scores.parts["clause"][:2], [1, 1], atol=1e-6)
    assert scores.parts["cosine"].argmax() == 2


async def test_the_words_of_a_query_are_read_once_and_score_the_same_again(
    town: Catalog, monkeypatch: pytest.MonkeyPatch
) -> None:
    read = list[str]()
    scores = Bm25f.scores

    def counted(self: Bm25f, query: str) -> Floats:
        read.append(query)
        return scores(self, query)

    monkeypatch.setattr(Bm25f, "scores", counted)
    indexes = retriever(town, FakeEncoder())
    first = await ranker("hybrid", indexes).score("book a repair slot for my bicycle")
    again = await ranker("hybrid", indexes).score("book a repair slot for my bicycle", np.ones(len(town), np.bool_))
    other = await ranker("hybrid", indexes).score("tides")

    assert read == ["book a repair slot for my bicycle", "tides"]
    np.testing.assert_array_equal(again.values, first.values)
    assert not np.array_equal(other.values, first.values)
    with pytest.raises(ValueError, match="read-only"):
        again.parts["bm25"][0] = 1  # others have the same array


@pytest.mark.parametrize("kind", ["summary_cosine", "definition_cosine"])
async def test_a_ranker_that_has_nothing_but_the_encoder_says_so_when_it_fails(town: Catalog, kind: RankerKind) -> None:
    with pytest.raises(EncoderError):
        await ranker(kind, retriever(town, FakeEncoder(broken=True))).score("tides")


@pytest.mark.parametrize("kind", ["keyword", "bm25"])
async def test_word_rankers_need_no_encoder(town: Catalog, kind: RankerKind) -> None:
    scores = await ranker(kind, retriever(town, FakeEncoder(broken=True))).score("tides")

    assert best(town, scores.values) == "get_tides"


@pytest.mark.requirement("P16")
@pytest.mark.parametrize("kind", ["summary_cosine", "definition_cosine", "keyword", "bm25", "hybrid"])
@pytest.mark.parametrize("description", ["", "A useful tool."])
async def test_tools_without_a_description_of_their_own_are_ranked_by_name(
    catalog_of: Callable[..., Catalog], kind: RankerKind, description: str
) -> None:
    catalog = catalog_of(*(fake_tool(name, description) for name in ("resize_image", "send_invoice", "mute_channel")))

    scores = await ranker(kind, retriever(catalog, FakeEncoder())).score("send the invoice")

    assert best(catalog, scores.values) == "send_invoice"
    assert scores.values.shape == (3,)


@pytest.mark.requirement("P17")
@pytest.mark.parametrize("kind", ["summary_cosine", "definition_cosine", "keyword", "bm25", "hybrid"])
async def test_tools_of_one_name_are_ranked_by_their_own_texts(
    catalog_of: Callable[..., Catalog], kind: RankerKind
) -> None:
    catalog = catalog_of(
        fake_tool("search", "Find books and authors.", server="one"),
        fake_tool("search", "Find flights and airports.", server="two"),
    )
    shared = ranker(kind, retriever(catalog, FakeEncoder()))

    flights, books = await shared.score("flights from an airport"), await shared.score("books by an author")

    assert int(flights.values.argmax()) == 1
    assert int(books.values.argmax()) == 0
