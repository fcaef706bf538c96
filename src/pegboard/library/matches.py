"""What a search over a board finds: the way back to tools that a turn did not get."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from numbers import Integral
from typing import Any

from pegboard.board_items import ITEM_KINDS, BoardItem
from pegboard.board_search import Found
from pegboard.catalog import Catalog
from pegboard.errors import ConfigError
from pegboard.model import Candidate, Decision, ToolId
from pegboard.retrieval.search_index import Certainty
from pegboard.routing.decisions import with_active

NOTHING_FITS = (
    "No tool here seems to do that. If one of the nearest does, call it; if none does, describe in other words what it "
    "has to do, or do without."
)
SHORT = 300
"""Characters of a description that a model is shown."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolMatch:
    """A tool that matches. ``name`` is what a model calls it by; ``sure`` is None if scores are no probabilities."""

    tool: ToolId
    name: str
    description: str
    score: float
    sure: Certainty | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolMatches:
    """The ``tools`` that match, best first; if nothing seems to fit, the ``nearest`` and some ``categories``.

    ``query`` is what was searched for, with its spelling corrected. ``items`` are the skills, agents, prompts and
    resources that match, by kind, best first. ``chance`` is the probability that any tool fits, 1 if the profile cannot
    tell.
    """

    query: str
    tools: tuple[ToolMatch, ...] = ()
    nearest: tuple[ToolMatch, ...] = ()
    items: tuple[BoardItem, ...] = ()
    chance: float = 1.0
    categories: tuple[str, ...] = ()

    @property
    def nothing_fits(self) -> bool:
        """Whether neither a tool nor anything else seems to do what was asked."""
        return not self.tools and not self.items

    @property
    def ids(self) -> tuple[ToolId, ...]:
        """The tools that match, or the nearest."""
        return tuple(each.tool for each in self.tools or self.nearest)

    def to_dict(self) -> dict[str, Any]:
        """What a model is answered: names and descriptions, and why if nothing matches."""
        shown: dict[str, Any] = {"tools": [_shown(each) for each in self.tools]}
        for kind in ITEM_KINDS:
            if of_kind := [each.to_dict() for each in self.items if each.kind == kind]:
                shown[f"{kind}s"] = of_kind
        if not self.nothing_fits:
            return shown
        places = {"categories": list(self.categories)} if self.categories else {}
        near = {"nearest": [_shown(each) for each in self.nearest]} if self.nearest else {}
        return shown | {"why": NOTHING_FITS, "chance": round(self.chance, 2)} | places | near


def checked_limit(limit: object) -> int:
    """The most tools that a search is to find. Raises ConfigError for what is no such number.

    >>> checked_limit(-1)
    Traceback (most recent call last):
    pegboard.errors.ConfigError: limit is -1. Give the most tools to find: a whole number of at least 1.
    """
    if isinstance(limit, bool) or not isinstance(limit, Integral) or limit < 1:
        raise ConfigError(f"limit is {limit!r}.", remedy="Give the most tools to find: a whole number of at least 1.")
    return int(limit)


def matches_of(found: Found, catalog: Catalog, limit: int) -> ToolMatches:
    """At most ``limit`` of what was found, without tools that were removed during the search."""
    names = catalog.plain_names

    def shown(candidates: Sequence[Candidate]) -> tuple[ToolMatch, ...]:
        return tuple(
            ToolMatch(
                tool=each.tool,
                name=names[each.tool],
                description=catalog[each.tool].description,
                score=each.score,
                sure=found.certainty(each),
            )
            for each in [each for each in candidates if each.tool in catalog][:limit]
        )

    return ToolMatches(
        query=found.query,
        tools=shown(found.tools),
        nearest=shown(found.nearest),
        chance=found.chance,
        categories=found.categories(catalog) if found.nothing_fits else (),
    )


def with_matches(decision: Decision, found: ToolMatches, catalog: Catalog) -> Decision:
    """The decision with what a search found, as far as its caller may use it."""
    items = tuple(dict.fromkeys([*decision.items, *found.items]))
    widened = decision if items == decision.items else replace(decision, items=items)
    more = reachable_only(decision, found.ids)
    return with_active(widened, catalog, [*decision.active, *more]) if more else widened


def reachable_only(decision: Decision, tools: Sequence[ToolId]) -> list[ToolId]:
    """Those of the tools that the caller of the decision may use and that are not active yet."""
    active = set(decision.active)
    return [tool for tool in tools if tool in decision.reachable and tool not in active]


def _shown(match: ToolMatch) -> dict[str, Any]:
    text = " ".join(match.description.split())
    return {"name": match.name, "description": text if len(text) <= SHORT else f"{text[:SHORT]}…"}
