"""Skills and prompts that are found by words."""

from __future__ import annotations

import pytest

from pegboard.retrieval import document_index
from pegboard.retrieval.document_index import DocumentIndex


def test_a_document_needs_half_of_the_words_of_a_query() -> None:
    index = DocumentIndex([{"name": "tides", "description": "When the tide is high"}, {"name": "wind"}])

    assert [place for place, _ in index.best("high tide in Oslo, tomorrow")] == [0]
    assert index.best("pay an invoice before high tide") == []


def test_a_query_reads_no_document_again(monkeypatch: pytest.MonkeyPatch) -> None:
    index = DocumentIndex([{"name": "tides", "body": "high tide " * 1_000}])
    read: list[str] = []
    terms = document_index.terms

    def noting(text: str) -> list[str]:
        read.append(text)
        return terms(text)

    monkeypatch.setattr(document_index, "terms", noting)

    assert [place for place, _ in index.best("high tide")] == [0]
    assert read == ["high tide"]
