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
from pegboard.retrieval.no_match import NoMatch, shipped
from pegboard.retrieval.speller import Speller
from pegboard.retrieval.words import known_words
from pegboard.sequence_change import SequenceChange

Certainty = Literal["high", "some", "low"]

LOOKED_AT = 5
"""The best candidates, one of which has to match."""
NO_COSINE = -1.0
"""Where no candidate has one."""
LEAST_COVERED = 0.2
"""Without comparable cosines, the least share of a search's words that a matching tool's text has."""
HIGH, SOME = 0.5, 0.15
"""Probabilities from which on a tool is found with high and with some certainty."""
FAINT, FAINT_IF_COMMON = 0.01, 0.2
"""A named server's tools come first if the best has this share of the best score of all; more if the name is an
ordinary word, such as `memory`."""


class SearchIndex:
    """Texts of one catalog, for searches. Thousands of tools take a second to index: not for the event loop.

    ``before`` is the index of an earlier catalog: of tools that both have, most is taken over.
    """

    def __init__(
        self,
        tools: Sequence[Tool],
        servers: Mapping[str, Server],
        no_match: NoMatch | None = None,
        before: SearchIndex | None = None,
    ) -> None:
        self._no_match = no_match or shipped()
        self._in_order = tuple(tools)
        self._described = {name: server.description for name, server in servers.items()}
        self._tools = {tool.id: tool for tool in tools}
        if before is None or not _agree(before._described, self._described):
            self._speller, self._words = Speller(tools), CatalogWords(tools, servers)
        else:
            change = SequenceChange.of(before._in_order, self._in_order)
            gone, new = change.middle(before._in_order), change.middle(self._in_order)
            stay = set(map(id, gone)).intersection(map(id, new))
            gone, new = ([tool for tool in each if id(tool) not in stay] for each in (gone, new))
            self._speller, self._words = before._speller.changed(gone, new), before._words.changed(gone, new, servers)
        self._servers = NamedServers(tools)

    def corrected(self, query: str, seen: frozenset[ToolId] | None = None) -> str:
        """The query with misspelt words corrected to words of the catalog; with ``seen``, to words of the tools that a
        caller may see alone: what others are about is no matter of theirs."""
        return self._speller.corrected(query, seen)

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
        """The probability that one of these candidates does what the query asks (`no_match`); 1 if one is named.

        ``comparable`` is whether cosines are those of an encoder that this was fitted for; if not, the words decide.
        """
        if any(map(is_named, best[:LOOKED_AT])):
            return 1.0
        signals = self.signals(query, best)
        if not comparable or signals["cosine"] == NO_COSINE:
            return float(signals["covered"] >= LEAST_COVERED)
        return self._no_match.chance(signals)

    def signals(self, query: str, best: Sequence[Candidate]) -> dict[str, float]:
        """What tells whether any of these candidates, best first, fits: one number for each of `no_match.SIGNALS`."""
        top, spans = best[:LOOKED_AT], clauses(query)
        asked = [self._words.asked(text) for text in [query, *(query[start:end] for start, end in spans)]]
        known = [self._tools[of.tool] for of in top if of.tool in self._tools]
        said = [{*known_words(f"{tool.server} {tool.name}"), *known_words(tool.description)} for tool in known]
        return {
            "cosine": max((_cosine(of.parts) for of in top), default=NO_COSINE),
            "covered": max((self._words.share(each, tool) for each in asked for tool in known), default=0.0),
            "absent": self._no_match.absent(query, said),
            "words": math.log1p(len(asked[0])),
            "clauses": math.log(len(spans)),
        }


def _agree(before: Mapping[str, str], after: Mapping[str, str]) -> bool:
    """Whether the servers of both are described alike."""
    return all(after[name] == said for name, said in before.items() if name in after)


def certainty(probability: float) -> Certainty:
    """
    >>> certainty(0.9), certainty(0.3), certainty(0.01)
    ('high', 'some', 'low')
    """
    return "high" if probability >= HIGH else "some" if probability >= SOME else "low"


def is_named(candidate: Candidate) -> bool:
    """Whether the query names the tool exactly, or as good as that."""
    return candidate.score >= float(NAMED)


def _cosine(parts: Mapping[str, float]) -> float:
    return max((parts[part] for part in ("cosine", "clause") if part in parts), default=NO_COSINE)
