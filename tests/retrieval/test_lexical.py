from __future__ import annotations

import math
from collections import Counter

import bm25s
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pegboard.retrieval.lexical import K1, B, Bm25f, inverse_document_frequency
from pegboard.retrieval.words import terms

VOCABULARY = ["alpha", "beta", "gamma", "delta", "kappa"]
texts = st.lists(st.sampled_from(VOCABULARY), max_size=8).map(" ".join)
corpora = st.lists(texts, min_size=1, max_size=6)


@given(corpus=corpora.filter(any), query=st.lists(st.sampled_from(VOCABULARY), min_size=1, max_size=5, unique=True))
def test_one_field_scores_as_an_independent_bm25_does(corpus: list[str], query: list[str]) -> None:
    known = [word for word in query if any(word in text.split() for text in corpus)]
    oracle = bm25s.BM25(method="lucene", k1=K1, b=B)
    oracle.index([text.split() for text in corpus], show_progress=False)
    expected = oracle.get_scores(known) if known else np.zeros(len(corpus))

    scores = Bm25f([{"text": text} for text in corpus], weights={"text": 1.0}).scores(" ".join(query))

    np.testing.assert_allclose(scores, expected, rtol=1e-4, atol=1e-6)


documents = st.lists(st.fixed_dictionaries({"name": texts, "description": texts}), min_size=1, max_size=5)


@given(corpus=documents, query=texts)
def test_several_fields_score_as_the_formula_says(corpus: list[dict[str, str]], query: str) -> None:
    weights = {"name": 3.0, "description": 1.0}

    scores = Bm25f(corpus, weights=weights).scores(query)

    np.testing.assert_allclose(
        scores, [by_formula(corpus, each, query, weights) for each in corpus], rtol=1e-4, atol=1e-6
    )


def by_formula(corpus: list[dict[str, str]], document: dict[str, str], query: str, weights: dict[str, float]) -> float:
    """Simple BM25F, one document at a time, straight from the paper."""
    total = 0.0
    for term, times in Counter(terms(query)).items():
        containing = sum(any(term in terms(each[field]) for field in weights) for each in corpus)
        frequency = 0.0
        for field, weight in weights.items():
            lengths = [len(terms(each[field])) for each in corpus]
            average = sum(lengths) / len(lengths) or 1.0
            normal = 1 - B + B * len(terms(document[field])) / average
            frequency += weight * terms(document[field]).count(term) / normal
        idf = math.log(1 + (len(corpus) - containing + 0.5) / (containing + 0.5))
        total += times * idf * frequency / (K1 + frequency)
    return total


@given(size=st.integers(1, 10_000), share=st.floats(0, 1))
def test_the_weight_of_a_word_is_never_negative_and_falls_with_the_tools_that_have_it(size: int, share: float) -> None:
    containing = int(size * share)

    assert inverse_document_frequency(size, containing) > 0
    assert inverse_document_frequency(size, containing) > inverse_document_frequency(size, containing + 1) or (
        containing == size
    )


def test_a_word_in_the_name_weighs_more_than_one_in_the_description() -> None:
    index = Bm25f([{"name": "export", "description": "report"}, {"name": "report", "description": "export"}])

    scores = index.scores("export")

    assert scores[0] > scores[1] > 0


@pytest.mark.parametrize("query", ["", "zebra", "the of"])
def test_a_query_of_unknown_words_scores_nothing(query: str) -> None:
    assert Bm25f([{"name": "export"}]).scores(query).tolist() == [0]


def test_documents_without_words_break_nothing() -> None:
    assert Bm25f([]).scores("x").shape == (0,)
    assert Bm25f([{}, {"name": ""}]).scores("x").tolist() == [0, 0]


@pytest.mark.requirement("P16")
def test_tools_of_one_description_are_told_apart_by_their_names() -> None:
    index = Bm25f([{"name": "read_file", "description": "A tool."}, {"name": "write_file", "description": "A tool."}])

    scores = index.scores("write it to a file")

    assert scores[1] > scores[0] > 0
