from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pegboard.model import Floats, Mask, Scores
from pegboard.retrieval.mentions import Mentioned
from pegboard.routing import PROFILES, Profile, select

HYBRID = PROFILES["hybrid"]


@dataclass(frozen=True)
class Case:
    scores: Floats
    eligible: Mask
    pinned: Mask
    tokens: list[int]
    profile: Profile

    def choose(self) -> select.Selection:
        scores = Scores(values=self.scores, scale="probability")
        return select.choose(scores, self.eligible, pinned=self.pinned, tokens=self.tokens, profile=self.profile)

    @property
    def gated(self) -> list[int]:
        """Places of the tools that are eligible, not pinned and at or above the threshold, best first."""
        threshold = self.profile.threshold
        passing = [
            place
            for place in range(len(self.scores))
            if self.eligible[place]
            and not self.pinned[place]
            and (threshold is None or self.scores[place] >= np.float32(threshold))
        ]
        return sorted(passing, key=lambda place: -self.scores[place])


@st.composite
def cases(draw: st.DrawFn) -> Case:
    n = draw(st.integers(0, 12))

    def column(elements: st.SearchStrategy[object]) -> list[object]:
        return draw(st.lists(elements, min_size=n, max_size=n))

    return Case(
        scores=np.array(column(st.sampled_from([0.0, 0.1, 0.25, 0.28, 0.5, 0.9, 1.0])), np.float32),
        eligible=np.array(column(st.booleans()), np.bool_),
        pinned=np.array(column(st.sampled_from([False, False, True])), np.bool_),
        tokens=[int(str(each)) for each in column(st.integers(0, 100))],
        profile=Profile(
            name="drawn",
            query="last_user",
            ranker="hybrid",
            threshold=draw(st.none() | st.sampled_from([0.0, 0.28, 0.6])),
            k=draw(st.none() | st.integers(1, 8)),
            recall=draw(st.none() | st.sampled_from([0.1, 0.5, 0.9, 1.0])),
            budget=draw(st.none() | st.integers(0, 300)),
        ),
    )


@given(case=cases())
def test_no_ineligible_tool_is_ever_chosen_or_ranked(case: Case) -> None:
    selection = case.choose()

    assert case.eligible[selection.chosen].all()
    assert case.eligible[selection.order].all()


@given(case=cases())
def test_no_tool_is_chosen_twice_and_all_that_is_chosen_was_ranked(case: Case) -> None:
    selection = case.choose()

    assert len(set(selection.chosen.tolist())) == len(selection.chosen)
    assert set(selection.chosen.tolist()) <= set(selection.order.tolist())


@pytest.mark.requirement("design.token-budget")
@given(case=cases())
def test_the_definitions_of_the_chosen_never_exceed_the_budget(case: Case) -> None:
    if case.profile.budget is not None:
        assert sum(case.tokens[place] for place in case.choose().chosen) <= case.profile.budget


@given(case=cases())
def test_pinned_tools_come_first_and_take_no_place_from_the_others(case: Case) -> None:
    chosen = case.choose().chosen.tolist()
    pinned = [place for place in chosen if case.pinned[place]]

    assert chosen[: len(pinned)] == pinned
    if case.profile.budget is None:
        assert pinned == np.flatnonzero(case.pinned & case.eligible).tolist()
    if case.profile.k is not None:
        assert len(chosen) - len(pinned) <= case.profile.k


@pytest.mark.requirement("000.eq7")
@given(case=cases())
def test_the_others_are_the_top_k_of_the_gated(case: Case) -> None:
    if case.profile.recall is None and case.profile.budget is None:
        others = [place for place in case.choose().chosen.tolist() if not case.pinned[place]]
        assert others == case.gated[: case.profile.k]


@given(case=cases())
def test_a_recall_target_takes_every_tool_that_holds_its_share_and_always_the_best(case: Case) -> None:
    recall, k = case.profile.recall, case.profile.k
    if recall is None or case.profile.budget is not None:
        return
    others = [place for place in case.choose().chosen.tolist() if not case.pinned[place]]
    there = sum(float(case.scores[place]) for place in case.gated)
    likely = [place for place in case.gated if float(case.scores[place]) >= (1 - recall) * there - 1e-6]

    assert others == (likely or case.gated[:1])[:k]


@given(case=cases())
def test_a_missed_recall_target_is_said(case: Case) -> None:
    selection = case.choose()
    scores = Scores(values=case.scores, scale="probability")
    order = np.array(case.gated, np.intp)

    wanted = select.likely_enough(scores, order, case.profile.recall)

    met = case.profile.recall is None or set(wanted.tolist()) <= set(selection.chosen.tolist())
    assert selection.meets_target == met


@pytest.mark.requirement("000.eq6")
@given(case=cases())
def test_the_gate_is_the_threshold_and_the_mask_together(case: Case) -> None:
    gated = select.gate(case.scores, case.eligible, 0.28)

    expected = [score >= np.float32(0.28) and ok for score, ok in zip(case.scores, case.eligible, strict=True)]
    assert gated.tolist() == expected


@pytest.mark.requirement("000.eq6")
def test_a_score_exactly_at_the_threshold_passes() -> None:
    assert select.gate(np.array([0.28, 0.2799], np.float32), np.array([True, True]), 0.28).tolist() == [True, False]


@pytest.mark.requirement("000.alg1")
def test_ineligible_tools_take_no_place_among_the_k() -> None:
    """Mask first, then k: the other order would leave one tool of two."""
    scores = Scores(values=np.array([0.9, 0.8, 0.7, 0.6, 0.1], np.float32), scale="cosine")
    eligible = np.array([False, True, False, True, True])

    selection = select.choose(
        scores,
        eligible,
        pinned=np.zeros(5, np.bool_),
        tokens=[1] * 5,
        profile=PROFILES["attention"].with_overrides(k=2),
    )

    assert selection.chosen.tolist() == [1, 3]


def test_equal_scores_stay_in_catalog_order() -> None:
    assert select.best_first(np.ones(5, np.float32), np.array([True, False, True, True, True])).tolist() == [0, 2, 3, 4]


def test_a_tool_that_is_too_large_is_passed_over_for_those_behind_it() -> None:
    assert select.under_budget(np.array([2, 0, 1]), [50, 30, 200], 100).tolist() == [0, 1]


@pytest.mark.parametrize("recall", [None, 0.9])
def test_of_no_tools_none_are_chosen(recall: float | None) -> None:
    empty = np.zeros(0, np.bool_)

    selection = select.choose(
        Scores(values=np.zeros(0, np.float32), scale="probability"),
        empty,
        pinned=empty,
        tokens=[],
        profile=HYBRID.with_overrides(recall=recall),
    )

    assert (selection.chosen.tolist(), selection.meets_target) == ([], True)


@pytest.mark.requirement("P12")
def test_where_nothing_can_be_said_about_relevance_everything_eligible_is_chosen() -> None:
    selection = select.everything(np.array([True, False, True]))

    assert selection.chosen.tolist() == [0, 2]


@pytest.mark.requirement("P12")
@given(scores=st.lists(st.sampled_from([0.0, 1e-9, 0.018]), min_size=1, max_size=20))
def test_the_hybrid_always_leaves_at_least_one_tool(scores: list[float]) -> None:
    n = len(scores)

    selection = select.choose(
        Scores(values=np.array(scores, np.float32), scale="probability"),
        np.ones(n, np.bool_),
        pinned=np.zeros(n, np.bool_),
        tokens=[10] * n,
        profile=HYBRID,
    )

    assert len(selection.chosen) >= 1


@given(asked=st.floats(0.01, 1))
def test_a_recall_is_asked_for_in_the_share_at_which_it_was_reached(asked: float) -> None:
    scores = Scores(values=np.ones(1, np.float32), scale="probability", least_share={0.5: 0.2, 0.9: 0.02})

    assert scores.share_for(0.5) == pytest.approx(0.2)
    assert scores.share_for(0.7) == pytest.approx(0.11)
    assert scores.share_for(asked) >= scores.share_for(1.0) == 0


def test_second_tools_for_a_job_take_no_place_that_another_job_could_have() -> None:
    jobs = np.array([0, 0, 2, 0, 4])
    scores = Scores(values=np.array([0.9, 0.8, 0.5, 0.4, 0.3], np.float32), scale="probability", jobs=jobs)
    everything = np.ones(5, np.bool_)

    def chosen(k: int) -> list[int]:
        profile = HYBRID.with_overrides(k=k, recall=1.0)
        none = np.zeros(5, np.bool_)
        return select.choose(scores, everything, pinned=none, tokens=[1] * 5, profile=profile).chosen.tolist()

    assert chosen(3) == [0, 2, 4]
    assert chosen(5) == [0, 2, 4, 1, 3]


def test_where_jobs_are_not_known_the_order_stays() -> None:
    order = np.array([3, 1, 2])

    assert select.distinct_first(order, None) is order
    assert select.distinct_first(np.zeros(0, np.intp), np.zeros(4, np.intp)).tolist() == []


def named(picked: list[int], objects: list[set[int]], *, k: int | None, tools: Collection[int] = ()) -> list[int]:
    """Of twelve tools, best first by their places, those picked with what a request names."""
    mentioned = Mentioned(tools=frozenset(tools), objects=tuple(map(frozenset, objects)))
    found = select.with_named(np.array(picked, np.intp), np.arange(12), mentioned, k)
    return sorted(int(place) for place in found)


@pytest.mark.requirement("A6")
def test_an_object_that_is_named_has_a_place_before_the_fifth_tool_of_another() -> None:
    invoices, tickets, customers = {0, 1, 2, 3, 4}, {5, 6, 7, 8, 9}, {10, 11}

    assert named(list(range(10)), [invoices, tickets, customers], k=10) == [0, 1, 2, 3, 4, 5, 6, 7, 8, 10]
    assert named(list(range(5)), [invoices, tickets, customers], k=6) == [0, 1, 2, 3, 5, 10]


@pytest.mark.requirement("A6")
def test_what_is_named_takes_free_places_first_and_nobodys_where_there_is_none() -> None:
    assert named([0, 1], [{0}, {7, 8}], k=3) == [0, 1, 7]
    assert named([0, 1], [{0}, {7, 8}], k=None) == [0, 1, 7]
    assert named([0, 1], [{0}, {7, 8}], k=2) == [0, 1]


@pytest.mark.requirement("A6")
def test_a_tool_that_is_named_comes_first_whatever_its_score() -> None:
    assert named([0, 1, 2], [], k=3, tools={11}) == [0, 1, 11]


@given(
    st.lists(st.integers(0, 11), unique=True),
    st.lists(st.frozensets(st.integers(0, 14), min_size=1), max_size=5),
    st.frozensets(st.integers(0, 14)),
    st.none() | st.integers(1, 12),
)
def test_whatever_is_named_no_tool_comes_twice_and_k_holds(
    picked: list[int], objects: list[frozenset[int]], tools: frozenset[int], k: int | None
) -> None:
    mentioned = Mentioned(tools=tools, objects=tuple(objects))
    before = np.array(sorted(picked)[:k], np.intp)

    after = [int(place) for place in select.with_named(before, np.arange(12), mentioned, k)]

    assert len(set(after)) == len(after) >= len(before)
    assert k is None or len(after) <= k
    assert set(after) <= set(range(12))
