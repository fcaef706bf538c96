from __future__ import annotations

from dataclasses import replace

import pytest

from pegboard.errors import ConfigError
from pegboard.routing import PROFILES, profile_named
from pegboard.routing.profiles import SEMANTIC_THRESHOLD


@pytest.mark.requirement("000.defaults")
def test_attention_has_the_defaults_of_its_paper() -> None:
    profile = PROFILES["attention"]

    assert (profile.threshold, profile.k, profile.query, profile.ranker) == (0.28, 10, "last_user", "summary_cosine")
    assert (profile.recall, profile.budget, profile.pool) == (None, None, None)


@pytest.mark.requirement("002.top20")
def test_keyword_takes_at_most_twenty_that_match_at_all() -> None:
    profile = PROFILES["keyword"]

    assert (profile.ranker, profile.k) == ("keyword", 20)
    assert profile.threshold == 1


@pytest.mark.requirement("003.rank", "003.threshold")
def test_semantic_ranks_five_by_default_and_its_threshold_is_seven_tenths() -> None:
    profile = PROFILES["semantic"]

    assert (profile.query, profile.ranker, profile.k) == ("last_message", "definition_cosine", 5)
    assert profile.threshold is None
    assert SEMANTIC_THRESHOLD == 0.7


def test_hybrid_has_no_absolute_threshold_and_stays_under_budgets() -> None:
    profile = PROFILES["hybrid"]

    assert profile.threshold is None
    assert (profile.recall, profile.k) == (0.9, 10)
    assert profile.budget
    assert profile.pool


@pytest.mark.parametrize("name", PROFILES)
def test_every_profile_makes_sense_as_it_comes(name: str) -> None:
    profile_named(name).check()

    assert profile_named(name).name == name


def test_an_unknown_profile_is_named_with_those_there_are() -> None:
    with pytest.raises(ConfigError, match="'hybird'") as caught:
        profile_named("hybird")

    assert all(name in caught.value.remedy for name in PROFILES)


def test_overrides_replace_only_what_is_given() -> None:
    profile = PROFILES["attention"].with_overrides(k=3, threshold=None, budget=0)

    assert (profile.k, profile.threshold, profile.budget) == (3, 0.28, 0)


@pytest.mark.requirement("design.threshold-scale")
@pytest.mark.parametrize(
    ("name", "overrides"),
    [
        ("attention", {"threshold": 28}),
        ("semantic", {"threshold": -1.5}),
        ("hybrid", {"threshold": 1.01}),
        ("hybrid", {"threshold": -0.1}),
        ("keyword", {"threshold": -1}),
        ("attention", {"recall": 0.9}),
        ("keyword", {"recall": 0.5}),
        ("hybrid", {"recall": 0}),
        ("hybrid", {"recall": 1.1}),
        ("hybrid", {"k": 0}),
    ],
)
def test_a_value_off_the_profiles_scale_is_a_config_error(name: str, overrides: dict[str, float]) -> None:
    with pytest.raises(ConfigError) as caught:
        PROFILES[name].with_overrides(**overrides)

    assert str(next(iter(overrides.values()))) in str(caught.value) or name in str(caught.value)
    assert caught.value.remedy


@pytest.mark.requirement("003.threshold")
def test_of_the_two_modes_of_the_semantic_filter_a_threshold_switches_off_the_rank() -> None:
    semantic = PROFILES["semantic"]

    assert semantic.with_overrides(threshold=0.7).k is None
    assert semantic.with_overrides(threshold=0.7, k=3).k == 3
    assert PROFILES["attention"].with_overrides(threshold=0.3).k == 10


def test_an_ungated_profile_has_no_limit_but_the_same_scores() -> None:
    ungated = PROFILES["hybrid"].ungated()

    assert (ungated.threshold, ungated.k, ungated.recall, ungated.budget) == (None, None, None, None)
    assert (ungated.ranker, ungated.query) == (PROFILES["hybrid"].ranker, PROFILES["hybrid"].query)


@pytest.mark.requirement("003.by-rank")
@pytest.mark.parametrize("name", ["attention", "semantic", "hybrid"])
def test_a_profile_by_rank_has_its_k_and_no_limit_that_was_fitted(name: str) -> None:
    ranked = PROFILES[name].ranked()

    assert (ranked.threshold, ranked.recall, ranked.k, ranked.by_rank) == (None, None, PROFILES[name].k, True)
    assert (ranked.budget, ranked.pool, ranked.query) == (
        PROFILES[name].budget,
        PROFILES[name].pool,
        PROFILES[name].query,
    )


def test_a_profile_by_rank_without_a_k_gets_one_unless_a_threshold_was_set() -> None:
    unlimited = replace(PROFILES["semantic"], k=None)

    assert unlimited.ranked().k == 10
    assert (unlimited.ranked(0.7).k, unlimited.ranked(0.7).threshold) == (None, 0.7)
