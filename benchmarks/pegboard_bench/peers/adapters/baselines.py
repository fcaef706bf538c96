"""What anyone writes first, on name and description: MiniLM's cosine, and joined with BM25 by z-scores or by rank."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import bm25s
import numpy as np
import Stemmer

from .minilm import MiniLM
from .protocol import PeerTool, Search, serve

BM25_SHARE = 0.5
"""z(cosine) + 0.5 z(BM25)."""
RRF_K = 60
"""Reciprocal rank fusion's constant (Cormack et al. 2009)."""

Scores = np.ndarray
Join = Callable[[Scores, Scores], Scores]


def z_scores(values: Scores) -> Scores:
    return np.asarray((values - values.mean()) / (values.std() + 1e-9))


def ranks(values: Scores) -> Scores:
    """1 for the best."""
    return np.asarray(1 + np.argsort(np.argsort(-values, kind="stable"), kind="stable"))


JOINS: dict[str, Join] = {
    "minilm": lambda cosine, _words: cosine,
    "zsum": lambda cosine, words: z_scores(cosine) + BM25_SHARE * z_scores(words),
    "rrf": lambda cosine, words: 1 / (RRF_K + ranks(cosine)) + 1 / (RRF_K + ranks(words)),
}


def build(tools: Sequence[PeerTool], k: int, variant: str) -> Search:
    texts = [f"{tool.name}: {tool.description}" for tool in tools]
    encoder, words, join = MiniLM(), word_index(texts), JOINS[variant]
    vectors = np.array(encoder.embed(texts))

    def search(text: str) -> list[str]:
        cosine = vectors @ np.array(encoder.embed([text])[0])
        best = np.argsort(-join(cosine, words(text)), kind="stable")[:k]
        return [tools[place].uid for place in best]

    return search


def word_index(texts: Sequence[str]) -> Callable[[str], Scores]:
    """BM25 of every text for a query."""
    index, stemmer = bm25s.BM25(), Stemmer.Stemmer("english")

    def tokens(several: Sequence[str]) -> list[list[str]]:
        split = [text.replace("_", " ") for text in several]
        return list(bm25s.tokenize(split, stopwords="en", stemmer=stemmer, return_ids=False, show_progress=False))

    index.index(tokens(texts), show_progress=False)
    known = set(index.vocab_dict)

    def scores(text: str) -> Scores:
        found = [token for token in tokens([text])[0] if token in known]
        return np.asarray(index.get_scores(found) if found else np.zeros(len(texts)))

    return scores


if __name__ == "__main__":
    serve("bm25s", build)
