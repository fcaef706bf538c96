"""A search for tools: what is found among those that a caller may use, how sure that is, and whether anything matches.

query ─► spelling ─► scores ─► exact names and named servers first ─► is anything meant? ─► tools, or the nearest
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from pegboard.catalog import Catalog
from pegboard.model import Candidate, Decision, Turn
from pegboard.protocols import Filter
from pegboard.retrieval.no_match import shipped
from pegboard.retrieval.query import edges
from pegboard.retrieval.search_index import Certainty, SearchIndex, certainty
from pegboard.routing import Profile
from pegboard.routing_board import RoutingBoard

LOOKED_THROUGH = 200
"""Candidates among which the tools of a named server are looked for."""
USUAL = 20
DOUBTED = 0.6
"""Below this chance that any tool is meant, no tool is found with more than low certainty."""

MOST_CATEGORIES = 8
"""Categories that are named where nothing fits."""
UNLIKE = 0.3
"""Below this cosine a query that shares no word with any tool matches nothing: made-up words reach 0.1 to 0.3 on five
catalogs of real tools, and no labelled request is among those."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """The ``tools`` that match, best first; if there are none, the ``nearest``, unless these have nothing in common
    with the query at all. A request in a user's own words often shares little with the tool that it needs.

    ``query`` is the text that was searched for, with corrected spelling. ``chance`` is the probability that any tool
    fits; 1 if the profile cannot tell, 0 if no tool has anything in common with the query.
    """

    query: str
    decision: Decision
    tools: tuple[Candidate, ...] = ()
    nearest: tuple[Candidate, ...] = ()
    chance: float = 1.0

    def certainty(self, candidate: Candidate) -> Certainty | None:
        """How sure it is that this tool is meant; None if scores are no probabilities."""
        if self.decision.scale != "probability" or self.decision.by_rank:
            return None
        return "low" if self.chance < DOUBTED else certainty(candidate.score)

    @property
    def nothing_fits(self) -> bool:
        """Whether no tool seems to do what was asked; the ``nearest`` are in doubt then."""
        return not self.tools

    def categories(self, catalog: Catalog, most: int = MOST_CATEGORIES) -> tuple[str, ...]:
        """The first categories (or servers) of the tools that the caller may use: where to look if nothing fits."""
        there = (tool.category or tool.server for tool in catalog.tools if tool.id in self.decision.reachable)
        return tuple(dict.fromkeys(there))[:most]


async def found_tools(
    board: RoutingBoard, index: SearchIndex, ask: Callable[[str], Turn], query: str, where: Filter | None = None
) -> Found:
    """The tools of one search, without a limit on their number. ``ask`` makes a turn with the caller's rights. Of a
    long query, only its start and its end are read.

    Profiles other than `hybrid` are left as their sources have them: their queries are not corrected, and what matches
    is decided by their own thresholds.
    """
    query = edges(query)
    if board.profile.ranker != "hybrid":
        decision = await board.search(ask(query), where)
        return Found(query=query, decision=decision, tools=tuple(matching(decision, board.profile)))
    query = index.corrected(query, board.permitted(ask(query)))
    decision = await board.search(ask(query), where, shown=LOOKED_THROUGH if index.named(query) else USUAL)
    chance = chance_of_match(index, board.profile, decision, decision.candidates, query)
    best = index.ordered(query, decision.candidates)
    if not chance:
        return Found(query=query, decision=decision, chance=0.0)
    if chance < shipped().least:
        return Found(query=query, decision=decision, nearest=tuple(best), chance=chance)
    return Found(query=query, decision=decision, tools=tuple(best), chance=chance)


def chance_of_match(
    index: SearchIndex, profile: Profile, decision: Decision, candidates: Sequence[Candidate], query: str
) -> float:
    """The probability that one of the candidates of a decision does what the query asks; 0 if none of them has anything
    in common with it. Below `no_match.shipped().least`, nothing fits."""
    if not _matching(candidates, profile):
        return 0.0
    comparable = bool(decision.encoder) and not decision.by_rank
    return index.chance(query, index.ordered(query, candidates), comparable=comparable)


def matching(decision: Decision, profile: Profile) -> list[Candidate]:
    """The candidates that match the query, best first; always-available tools have to match too."""
    return _matching(decision.candidates, profile)


def _matching(candidates: Sequence[Candidate], profile: Profile) -> list[Candidate]:
    best = sorted(candidates, key=lambda candidate: -candidate.score)
    if profile.scale == "points" and profile.threshold is not None:
        return [candidate for candidate in best if candidate.score >= profile.threshold]
    return [] if best and all(_says_nothing(candidate.parts) for candidate in best) else best


def _says_nothing(parts: Mapping[str, float]) -> bool:
    """Whether query and tool share no word and are not similar in meaning."""
    words = [parts[part] for part in ("bm25", "name") if part in parts]
    meanings = [parts[part] for part in ("cosine", "clause") if part in parts]
    return bool(words) and not any(words) and max(meanings, default=0.0) < UNLIKE
