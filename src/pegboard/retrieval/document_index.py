"""Documents such as skills and prompts, found by words; a query that shares too few of its words finds none."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pegboard.retrieval.lexical import Bm25f
from pegboard.retrieval.words import FUNCTION_WORDS, raw_words, terms

Documents = Sequence[Mapping[str, str]]
"""Each with the fields of `WEIGHTS`."""

ENOUGH = 0.5
"""The share of a query's words that a document has to contain."""
WEIGHTS: Mapping[str, float] = {"name": 3.0, "description": 1.0, "body": 0.5}


class DocumentIndex:
    """BM25F over name, description and body.

    >>> index = DocumentIndex([{"name": "tides", "description": "When the tide is high"}, {"name": "wind"}])
    >>> [place for place, _ in index.best("high tide")], index.best("an invoice")
    ([0], [])
    """

    def __init__(self, documents: Documents) -> None:
        self.documents = documents
        self._words = Bm25f(documents, weights=WEIGHTS)
        self._terms = [frozenset(terms(" ".join(document.values()))) for document in documents]

    def best(self, query: str) -> list[tuple[int, float]]:
        """Place and score of each document that has enough of the query's words, best first."""
        said = [word for word in raw_words(query) if word not in FUNCTION_WORDS]
        words = set(terms(" ".join(said) or query))
        if not self.documents or not words:
            return []
        scores = self._words.scores(query)
        ranked = sorted(
            ((at, float(scores[at])) for at in range(len(self.documents)) if scores[at] > 0),
            key=lambda found: (-found[1], found[0]),
        )
        return [found for found in ranked if self._has_enough(found[0], words)]

    def _has_enough(self, place: int, words: set[str]) -> bool:
        return len(words & self._terms[place]) >= ENOUGH * len(words)
