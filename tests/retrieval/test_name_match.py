from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pegboard.retrieval.intents import clauses
from pegboard.retrieval.name_match import NameIndex
from pegboard.testing import fake_tool

NAMES = (
    ("jira", "jira_delete_issue"),
    ("jira", "jira_create_issue"),
    ("jira", "jira_create_sprint"),
    ("jira", "jira_get_issue"),
    ("jira", "jira_search"),
    ("github", "create_issue"),
    ("github", "search_pull_requests"),
    ("github", "merge_pull_request"),
    ("files", "read_file"),
)
INDEX = NameIndex([fake_tool(name, server=server) for server, name in NAMES])


def ranking(query: str) -> Sequence[str]:
    scores = INDEX.scores(query, clauses(query))
    return ["/".join(NAMES[place]) for place in np.argsort(-scores, kind="stable")]


@pytest.mark.requirement("B5")
@pytest.mark.parametrize(
    ("query", "wanted"),
    [
        ("create a jira ticket", "jira/jira_create_issue"),
        ("make a new issue in Jira", "jira/jira_create_issue"),
        ("remove the jira ticket", "jira/jira_delete_issue"),
        ("open a bug on github", "github/create_issue"),
        ("find PRs", "github/search_pull_requests"),
        ("merge a PR", "github/merge_pull_request"),
        ("show the file", "files/read_file"),
        ("read the file, then create a jira sprint", "files/read_file"),
    ],
)
def test_verb_and_object_say_which_tool_of_which_server(query: str, wanted: str) -> None:
    best = ranking(query)[: 2 if "then" in query else 1]

    assert wanted in best


@pytest.mark.requirement("B5")
def test_find_jira_issues_assigned_to_me_is_a_search_before_it_is_a_deletion() -> None:
    order = ranking("find Jira issues assigned to me")

    assert order.index("jira/jira_search") < order.index("jira/jira_create_issue")


def test_a_long_story_names_nothing() -> None:
    story = "yesterday evening my neighbour told a story where some issue came up while we walked home in heavy rain"

    assert INDEX.scores(story, clauses(story)).max() < 0.1
    assert INDEX.scores("jira create issue", clauses("jira create issue")).max() == pytest.approx(1)


def test_a_near_synonym_counts_less_than_the_word() -> None:
    word, synonym = (INDEX.scores(text, clauses(text))[1] for text in ("jira create issue", "jira create ticket"))

    assert 0 < synonym < word


@given(query=st.text(max_size=200))
def test_whatever_is_asked_every_tool_has_a_share(query: str) -> None:
    scores = INDEX.scores(query, clauses(query))

    assert scores.shape == (len(NAMES),)
    assert ((scores >= 0) & (scores <= 1 + 1e-5)).all()
