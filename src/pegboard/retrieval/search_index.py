"""What a search for tools adds to the ranking of one catalog: spelling, servers that it names, and whether anything
matches at all.

A turn of a conversation always gets tools, since its text may be about anything. A search is short and about one tool;
it must be possible to tell it that there is none.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Literal

from pegboard.model import Candidate, Server, Tool, ToolId
from pegboard.retrieval.catalog_words import CatalogWords
from pegboard.retrieval.exact_names import NAMED
from pegboard.retrieval.intents import clauses
from pegboard.retrieval.named_servers import NamedServers
from pegboard.retrieval.speller import Speller

Certainty = Literal["high", "some", "low"]

LOOKED_AT = 5
"""The best candidates, one of which has to match."""
COSINE, COVERED, NEITHER = 5.6, 5.27, -4.81
LEAST_CHANCE = 0.4
"""Below this chance a search matches nothing.

P(some tool is meant) = σ(5.6 · cosine + 5.27 · share of the words − 4.81): logistic regression on the half of
`fleet_searches.jsonl` that is for fitting (2026-11).
"""
LEAST_COVERED = 0.2
"""Without comparable cosines, the least share of a search's words that a matching tool's text has."""
HIGH, SOME = 0.5, 0.15
"""Probabilities from which on a tool is found with high and with some certainty."""
FAINT, FAINT_IF_COMMON = 0.01, 0.2
"""A named server's tools come first if the best has this share of the best score of all; more if the name is an
ordinary word, such as `memory`."""


class SearchIndex:
    """Texts of one catalog, for searches. Thousands of tools take a second to index: not for the event loop."""

    def __init__(self, tools: Sequence[Tool], servers: Mapping[str, Server]) -> None:
        self._tools = {tool.id: tool for tool in tools}
        self._speller = Speller(tools)
        self._words = CatalogWords(tools, servers)
        self._servers = NamedServers(tools)

    def corrected(self, query: str) -> str:
        """The query with misspelt words corrected to words of the catalog."""
        return self._speller.corrected(query)

    def named(self, query: str) -> frozenset[ToolId]:
        """The tools of the servers and products that the query names."""
        return self._servers.of(query)[0]

    def ordered(self, query: str, best: Sequence[Candidate]) -> list[Candidate]:
        """The candidates, best first: exact names, then the tools of the servers that the query names, then others."""
        of_servers, certain = self._servers.of(query)
        likely = max((each.score for each in best if each.tool in of_servers), default=0.0)
        highest = max((each.score for each in best), default=0.0)
        first = of_servers if likely >= (FAINT if certain else FAINT_IF_COMMON) * highest else frozenset()
        return sorted(best, key=lambda each: (-is_named(each), each.tool not in first, -each.score))

    def chance(self, query: str, best: Sequence[Candidate], *, comparable: bool = True) -> float:
        """The probability that the query means one of these candidates, by their cosines and words.

        ``comparable`` is whether cosines are those of an encoder that this was fitted for; if not, the words decide.
        """
        top = best[:LOOKED_AT]
        if any(map(is_named, top)):
            return 1.0
        texts = [query, *(query[start:end] for start, end in clauses(query))]
        asked = [self._words.asked(text) for text in texts]
        known = [self._tools[of.tool] for of in top if of.tool in self._tools]
        covered = max((self._words.share(each, tool) for each in asked for tool in known), default=0.0)
        cosines = [cosine for of in top if (cosine := _cosine(of.parts)) is not None]
        if not comparable or not cosines:
            return float(covered >= LEAST_COVERED)
        return 1 / (1 + math.exp(-(COSINE * max(cosines) + COVERED * covered + NEITHER)))


def certainty(probability: float) -> Certainty:
    """
    >>> certainty(0.9), certainty(0.3), certainty(0.01)
    ('high', 'some', 'low')
    """
    return "high" if probability >= HIGH else "some" if probability >= SOME else "low"


def is_named(candidate: Candidate) -> bool:
    """Whether the query names the tool exactly, or as good as that."""
    return candidate.score >= float(NAMED)


def _cosine(parts: Mapping[str, float]) -> float | None:
    found = [parts[part] for part in ("cosine", "clause") if part in parts]
    return max(found) if found else None
