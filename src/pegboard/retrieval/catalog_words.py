"""The words of one catalog: how rare each is, and how much of a search a tool's text has."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from copy import copy

from pegboard.model import Server, Tool
from pegboard.retrieval.lexical import counted
from pegboard.retrieval.name_match import NEAR, NEARLY, written_out
from pegboard.retrieval.tool_texts import fields
from pegboard.retrieval.words import FUNCTION_WORDS, raw_words, stem

ASKED = frozenset(map(stem, raw_words("tool function use using want need help how what which find")))
"""Words of searches that say nothing about the tool."""


class CatalogWords:
    """Rarity is idf over the tools' texts, the same fields as BM25F reads."""

    def __init__(self, tools: Sequence[Tool], servers: Mapping[str, Server]) -> None:
        self._servers = servers
        self._uses: Counter[str] = Counter()
        self._size = len(tools)
        for tool in tools:
            self._uses.update(self._stems(tool))

    def changed(self, gone: Sequence[Tool], new: Sequence[Tool], servers: Mapping[str, Server]) -> CatalogWords:
        """Those of the catalog from which tools went and to which others came; servers' descriptions are the same."""
        other = copy(self)
        other._uses, other._size = self._uses.copy(), self._size + len(new) - len(gone)
        for tool in gone:
            other._uses.subtract(self._stems(tool))
        other._servers = servers
        for tool in new:
            other._uses.update(other._stems(tool))
        return other

    def asked(self, query: str) -> dict[str, float]:
        """The stems of the query's content words with their rarity; every one of the catalog's, or as rare as can be
        where no tool has it."""
        words = (part for word in raw_words(query) if word not in FUNCTION_WORDS for part in written_out(word))
        stems = dict.fromkeys(map(stem, words))
        said = {each: self.rarity(each) for each in stems if each not in ASKED}
        return said or {each: self.rarity(each) for each in stems}

    def rarity(self, word: str) -> float:
        """idf of a stem, the highest where no tool has it."""
        uses = self._uses[word]
        return math.log(1 + (self._size - uses + 0.5) / (uses + 0.5))

    def share(self, asked: Mapping[str, float], tool: Tool) -> float:
        """The share of what is asked, weighted by rarity, that the tool's text has; synonyms count for less."""
        if not asked:
            return 0.0
        there = self._stems(tool)
        found = sum(weight * _credit(word, there) for word, weight in asked.items())
        return found / sum(asked.values())

    def _stems(self, tool: Tool) -> frozenset[str]:
        texts = fields(tool, self._servers.get(tool.server)).values()
        return frozenset(each for text in texts for each in counted(text))


def _credit(word: str, there: Iterable[str]) -> float:
    if word in there:
        return 1.0
    return NEARLY if any(near in there for near in NEAR.get(word, ())) else 0.0
