"""Which of a decision's candidates a search shows: what matches, or the whole category that the query names."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from pegboard.model import Candidate, Decision, ToolId
from pegboard.retrieval.words import FUNCTION_WORDS, raw_words, stem
from pegboard.routing import Profile

UNLIKE = 0.3
"""Below this cosine a query that shares no word with any tool means none of them: made-up words reach 0.1 to 0.3 on
five catalogs of real tools, and no labelled request is among those."""

BESIDE_A_CATEGORY = frozenset(
    stem(word)
    for word in re.findall(
        r"\w+",
        "all any area available category categories everything feature features find function functions functionality "
        "handle handling list manage management manager managing need operate operation operations related show stuff "
        "tool toolkit tools use want what which work working",
    )
)
"""What may stand beside a category's name in a query that asks for all of it: "issue management"."""


def matching(decision: Decision, profile: Profile) -> list[Candidate]:
    """The candidates that have something to do with the query, best first; always-available ones are no exception."""
    best = sorted(decision.candidates, key=lambda candidate: -candidate.score)
    if profile.scale == "points" and profile.threshold is not None:
        return [candidate for candidate in best if candidate.score >= profile.threshold]
    return [] if best and all(_says_nothing(candidate.parts) for candidate in best) else best


def named_category(query: str, categories: Mapping[ToolId, str]) -> str | None:
    """The category whose name, with or without that of its server, is all that the query says."""
    said = _stems(query)
    asked = said - BESIDE_A_CATEGORY
    for category in sorted(set(categories.values())):
        server, _, label = category.rpartition(": ")
        of_label = _stems(label)
        if of_label and of_label <= said and asked <= of_label | _stems(server):
            return category
    return None


def _says_nothing(parts: Mapping[str, float]) -> bool:
    """No word in common, and nothing near it in meaning."""
    words = [parts[part] for part in ("bm25", "name") if part in parts]
    meanings = [parts[part] for part in ("cosine", "clause") if part in parts]
    return bool(words) and not any(words) and max(meanings, default=0.0) < UNLIKE


def _stems(text: str) -> frozenset[str]:
    return frozenset(_without_function_words(raw_words(text)))


def _without_function_words(words: Iterable[str]) -> Iterable[str]:
    return (stem(word) for word in words if word not in FUNCTION_WORDS)
