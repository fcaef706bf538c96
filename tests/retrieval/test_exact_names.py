from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from pegboard.model import Scores, Server
from pegboard.retrieval import Retriever, ranker
from pegboard.retrieval.exact_names import NAMED, ExactNames, name_first
from pegboard.retrieval.rankers import Ranker
from pegboard.testing import FakeEncoder, fake_tool

TOOLS = (
    fake_tool("jira_delete_issue", "Delete an issue.", server="atlassian"),
    fake_tool("jira_create_issue", "Create an issue.", server="atlassian"),
    fake_tool("create_issue", "Create an issue.", server="github"),
    fake_tool("search", "Search the web.", server="web"),
    fake_tool("getUserNotes", "Notes of a user.", server="notes"),
    fake_tool("get-user-notes", "Notes of a user.", server="other"),
    replace(fake_tool("quiesce", "Stop all writes.", server="db"), aliases=("freeze_database",)),
)


def named(query: str) -> list[str]:
    return [str(TOOLS[place].id) for place in ExactNames(TOOLS).find(query)]


@pytest.mark.requirement("B5")
@pytest.mark.parametrize(
    "query",
    [
        "jira_create_issue",
        " jira_create_issue\n",
        "JIRA_CREATE_ISSUE",
        "jira-create-issue",
        "jira create issue",
        "jiraCreateIssue",
        "atlassian__jira_create_issue",
        "mcp__atlassian__jira_create_issue",
        "mcp__our_own_name_for_it__jira_create_issue",
        "atlassian/jira_create_issue",
        "atlassian.jira_create_issue",
        "Call jira_create_issue for the login bug.",
        "Use `jira_create_issue`, please",
        "which arguments does 'jira create issue' take?",
        "“jira_create_issue” it is",
    ],
)
def test_a_name_is_known_however_it_is_written(query: str) -> None:
    assert named(query) == ["atlassian/jira_create_issue"]


@pytest.mark.requirement("B5")
def test_a_servers_name_before_it_says_which_of_two_tools_is_meant() -> None:
    assert named("github__create_issue") == ["github/create_issue"]
    assert named("create_issue and jira_create_issue") == ["atlassian/jira_create_issue", "github/create_issue"]


def test_of_names_that_only_case_or_separators_tell_apart_the_one_as_written_is_meant() -> None:
    assert named("getUserNotes") == ["notes/getUserNotes"]
    assert named("get-user-notes") == ["other/get-user-notes"]
    assert named("get_user_notes") == ["notes/getUserNotes", "other/get-user-notes"]


def test_a_name_of_one_ordinary_word_has_to_stand_alone_or_in_quotes() -> None:
    assert named("search") == named("call `search` now") == named("web__search") == ["web/search"]
    assert named("search the tickets of last week") == []
    assert named("see https://example.com/search") == []


def test_an_ordinary_word_of_a_sentence_is_no_name_of_several_words() -> None:
    names = ExactNames([fake_tool("log_in"), fake_tool("set_up")])

    assert names.find("the login page is broken, create an issue about its setup").tolist() == []
    assert names.find("login").tolist() == names.find("call `login` now").tolist() == [0]
    assert names.find("call log_in and setUp now").tolist() == [0, 1]


def test_an_alias_is_a_name() -> None:
    assert named("freeze database") == ["db/quiesce"]


@pytest.mark.parametrize("query", ["", "  ", "__", "“”", "🎉", "x" * 10_000, "create it", "don't ask what it's for"])
def test_what_names_nothing_finds_nothing(query: str) -> None:
    assert named(query) == []


def test_named_tools_come_first_in_their_own_order_and_all_values_stay_probabilities() -> None:
    values = np.array([1.0, 0.2, 0.0, 0.9], np.float32)

    scores = name_first(Scores(values=values, scale="probability"), np.array([1, 2]))

    assert np.argsort(-scores.values, kind="stable").tolist() == [1, 2, 0, 3]
    assert ((scores.values >= 0) & (scores.values <= 1)).all()


@pytest.mark.requirement("B5")
async def test_the_hybrid_ranks_every_tool_first_that_is_asked_for_by_its_name() -> None:
    hybrid = over_all_tools()

    first = [(await hybrid.score(tool.name)).values.argmax() for tool in TOOLS]

    assert first == list(range(len(TOOLS)))


async def test_a_name_gives_no_right_to_its_tool() -> None:
    among = np.array([tool.name != "search" for tool in TOOLS], np.bool_)

    scores = await over_all_tools().score("search", among)

    assert scores.values[~among] < NAMED


def over_all_tools() -> Ranker:
    servers = {tool.server: Server(name=tool.server) for tool in TOOLS}
    return ranker("hybrid", Retriever(TOOLS, servers, documents=FakeEncoder(), queries=FakeEncoder()))
