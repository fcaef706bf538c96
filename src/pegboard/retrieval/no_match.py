"""The probability that any tool of a board does what a search asks, from signals that the scoring has computed anyway.

    signals ─► weighted sum ─► probability (logistic); below `least`, nothing fits

The weights and the names of services are in `no_match.json`, written by `scripts/fit_no_match.py` with a record of the
data.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass
from functools import lru_cache
from importlib.resources import files
from typing import Any

from pegboard.retrieval.name_match import written_out
from pegboard.retrieval.named_servers import LABEL
from pegboard.retrieval.words import raw_words

SIGNALS = ("cosine", "covered", "absent", "words", "clauses")
"""Largest cosine of the best tools with the search or a clause; largest share of its words, by rarity, that one of them
has; the share of the services it names that none of them is of; ln(1 + content words); ln(clauses)."""
LONGEST = 2
"""Words of a service's name: `google drive`."""
SHORTEST = 3
"""Letters of a name before a colon that is taken for a service's."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NoMatch:
    """P(some tool fits) = σ(intercept + Σ weight · signal); below ``least``, nothing fits.

    ``services`` are names of products, of one word or two, whether or not the board has them.
    """

    intercept: float
    weights: Mapping[str, float]
    least: float
    services: frozenset[str]

    def chance(self, signals: Mapping[str, float]) -> float:
        """The probability that some tool fits."""
        return 1 / (1 + math.exp(-self.intercept - sum(self.weights[name] * signals[name] for name in SIGNALS)))

    def absent(self, query: str, texts: Iterable[Set[str]]) -> float:
        """The least share of the services named in a query that a tool's words lack; 0 if the query names none."""
        label = LABEL.match(query)
        first = raw_words(label.group(1))[:1] if label else []
        named = self._named(raw_words(query)) | {word for word in first if len(word) >= SHORTEST}
        if not named:
            return 0.0
        return min((sum(not _says(name, words) for name in named) / len(named) for words in texts), default=1.0)

    def _named(self, words: Sequence[str]) -> frozenset[str]:
        """The services that these words name in a row."""
        runs = (words[start : start + most] for start in range(len(words)) for most in range(1, LONGEST + 1))
        return self.services.intersection(map(" ".join, runs))


@lru_cache(maxsize=1)
def shipped() -> NoMatch:
    return of_fit(json.loads((files("pegboard.retrieval") / "no_match.json").read_text("utf-8")))


def of_fit(fitted: Mapping[str, Any]) -> NoMatch:
    """From the contents of `no_match.json`."""
    return NoMatch(
        intercept=fitted["intercept"],
        weights=fitted["weights"],
        least=fitted["least"],
        services=frozenset(fitted["services"]),
    )


def _says(name: str, words: Set[str]) -> bool:
    """Whether a tool's words have those of a name, or longer forms of them: `mongo` in `mongodb`, `kubernetes` for
    `k8s`."""
    parts = (part for word in name.split() for part in written_out(word))
    return all(part in words or any(each.startswith(part) for each in words) for part in parts)
