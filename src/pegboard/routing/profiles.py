"""Profiles: configurations of the one pipeline, as data."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from pegboard.errors import ConfigError
from pegboard.model import Scale
from pegboard.retrieval import QueryKind, RankerKind

SCALES: Mapping[RankerKind, Scale] = {
    "summary_cosine": "cosine",
    "definition_cosine": "cosine",
    "keyword": "points",
    "bm25": "points",
    "hybrid": "probability",
    "two_layers": "utility",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Profile:
    """How a turn becomes a selection. None switches a limit off.

    ``threshold`` is on the scale of the ranker's scores, ``k`` a number of tools, ``recall`` the mean recall to reach
    (requires probabilities); ``budget`` and ``pool`` are tokens of phase 2 and phase 1. With ``rank_or_threshold``, a
    threshold given alone replaces k (the gateway article, step 4). ``results`` is the default number of tools that a
    search of the MCP gateway shows; None is the gateway's own default. With ``whole_categories``, a search that names a
    category shows all of it (the lazy-loading PRD, option B). With ``by_rank``, scores only give an order: see
    `ranked`.
    """

    name: str
    query: QueryKind
    ranker: RankerKind
    threshold: float | None = None
    k: int | None = None
    recall: float | None = None
    budget: int | None = None
    pool: int | None = None
    rank_or_threshold: bool = False
    by_rank: bool = False
    results: int | None = None
    whole_categories: bool = False

    @property
    def is_priced(self) -> bool:
        """Whether EHRR's two layers price the tools between scoring and selection."""
        return self.scale == "utility"

    @property
    def scale(self) -> Scale:
        return SCALES[self.ranker]

    def ranked(self, threshold: float | None = None) -> Profile:
        """The profile for an encoder without a fit: its best k, above a configured threshold."""
        k = self.k if threshold is not None else self.k or RANKED_K
        return replace(self, threshold=threshold, recall=None, k=k, by_rank=True)

    def with_overrides(self, **changes: Any) -> Profile:
        """The profile with every change that is not None. Raises ConfigError for invalid values."""
        given = {name: value for name, value in changes.items() if value is not None}
        if self.rank_or_threshold and "threshold" in given:
            given = {"k": None} | given
        changed = replace(self, **given)
        changed.check()
        return changed

    def ungated(self) -> Profile:
        """Every tool in order of score: no threshold, no k, no budget."""
        return replace(self, threshold=None, k=None, recall=None, budget=None)

    def check(self) -> None:
        if self.k is not None and self.k < 1:
            raise ConfigError(f"k is {self.k}.", remedy="Use 1 or more.")
        if self.recall is not None and not 0 < self.recall <= 1:
            raise ConfigError(f"recall is {self.recall}.", remedy="Use a share above 0, at most 1.")
        if self.recall is not None and self.scale != "probability":
            raise ConfigError(
                f"Profile {self.name!r} ranks by {self.scale}, so a recall target cannot be met.",
                remedy="Use --profile hybrid, or leave recall off.",
            )
        if self.threshold is not None and not _fits(self.threshold, self.scale):
            raise ConfigError(
                f"A threshold of {self.threshold} is off the scale of profile {self.name!r} ({self.scale}).",
                remedy="A cosine lies between -1 and 1, a probability between 0 and 1, points are 0 or more, "
                "a utility is at most 1.",
            )


PROFILES: Mapping[str, Profile] = {
    profile.name: profile
    for profile in (
        Profile(name="attention", query="last_user", ranker="summary_cosine", threshold=0.28, k=10),
        Profile(
            name="keyword",
            query="last_user",
            ranker="keyword",
            threshold=1.0,
            k=20,
            pool=0,
            results=20,
            whole_categories=True,
        ),
        Profile(name="semantic", query="last_message", ranker="definition_cosine", k=5, rank_or_threshold=True),
        Profile(name="ehrr", query="last_user", ranker="two_layers", k=3),
        Profile(name="hybrid", query="conversation", ranker="hybrid", k=10, recall=0.9, budget=8000, pool=1000),
    )
}
"""`attention` is Tool Attention (θ=0.28, k=10), `keyword` the lazy-loading PRD (top 20, no pool), `semantic` the
gateway article by rank (5), `ehrr` EHRR (n=3, the rest in `economics.Parameters`), `hybrid` our own."""

RANKED_K = 10
"""The k for an encoder without a fit, if the profile has none."""

SEMANTIC_THRESHOLD = 0.7
"""The gateway article's threshold mode keeps tools with at least this cosine: `--profile semantic --threshold 0.7`."""


def profile_named(name: str) -> Profile:
    try:
        return PROFILES[name]
    except KeyError:
        raise ConfigError(f"No profile {name!r}.", remedy=f"Use one of {', '.join(PROFILES)}.") from None


def _fits(threshold: float, scale: Scale) -> bool:
    match scale:
        case "cosine":
            return -1 <= threshold <= 1
        case "probability":
            return 0 <= threshold <= 1
        case "points":
            return threshold >= 0
        case "utility":
            return threshold <= 1
