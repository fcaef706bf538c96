from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from pegboard.retrieval.name_words import distinct_labels, done_and_to_what, words_of, words_that_differ


def test_a_verb_that_leads_is_not_what_a_tool_is_about() -> None:
    assert [word.text for word in words_of("list_mailing_lists") if word.is_about] == ["mailing", "lists"]
    assert [word.text for word in words_of("getAllPullRequestData") if word.is_about] == ["pull", "request"]


def test_words_that_nearly_all_names_have_tell_nothing() -> None:
    words = words_that_differ(["jira_get_issue", "jira_add_comment", "jira_list_boards"])

    assert [[word.text for word in of_name] for of_name in words] == [
        ["get", "issue"],
        ["add", "comment"],
        ["list", "boards"],
    ]
    assert [of_name[0].leads for of_name in words] == [True, True, True]


def test_verbs_and_nouns_are_told_apart_behind_a_word_that_all_begin_with() -> None:
    verbs, nouns = done_and_to_what(["jira_create_issue", "jira_get_issue", "jira_create_sprint"])

    assert (verbs, nouns) == (["create", "get"], ["issue", "sprint"])


def test_labels_are_the_words_that_tell_groups_apart() -> None:
    groups = [["click_button", "click_link"], ["open_tab", "close_tab", "list_tabs"]]

    assert distinct_labels(groups) == ["click, button", "tab"]


def test_labels_of_groups_of_the_same_words_differ() -> None:
    assert distinct_labels([["echo"], ["echo2"], ["echo"]]) == ["echo", "echo2", "group 3"]
    assert len(set(distinct_labels([["get_a_b"], ["get_b_a"], ["a_b"]]))) == 3


@given(st.lists(st.lists(st.text("ab_ 1é", max_size=6), min_size=1, max_size=4), max_size=8))
def test_no_label_comes_twice_and_none_is_empty(groups: list[list[str]]) -> None:
    labels = distinct_labels(groups, "a")

    assert len(set(labels)) == len(labels) == len(groups)
    assert all(labels)
