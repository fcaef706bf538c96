"""Word indexes of a catalog that changes: they rank like indexes that are built of the changed catalog."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
import pytest

from pegboard.model import Server, ServerName, Tool
from pegboard.retrieval.intents import clauses
from pegboard.retrieval.word_indexes import WordIndexes
from pegboard.testing import fake_tool

VERBS = ("create", "list", "delete", "search", "get", "sendMessage", "add")
OBJECTS = ("issue", "branch", "file", "invoice", "tide", "ticket", "calendar_event", "channels")
SERVERS = ("github", "jira", "zendesk", "git-server", "slack")
TEXTS = (
    "Creates an issue in a repository.",
    "Lists every branch; use it with Jira. Lists every branch of all repositories there are.",
    "When the tide is high at a harbour, for sailors and for fishermen.",
    "Find me a flight to Oslo. What's on my calendar today? Please order a pizza.",
    "Sends a message to a channel of Slack.",
    "",
    "删除文件",
)
QUERIES = (
    "create an issue in GitHub",
    "zendesk: list tickets and then delete the invoice",
    "`create_issue`",
    "when is high tide at the harbour?",
    "send a message to a Slack channel, and add an event to the calendar",
    "jira_list_branch",
    "文件",
)


def a_tool(chance: random.Random, server: str, number: int) -> Tool:
    name = f"{chance.choice(VERBS)}_{chance.choice(OBJECTS)}"
    tool = fake_tool(
        chance.choice((name, f"{server}_{name}", f"{name}_{number}", "search")), chance.choice(TEXTS), server=server
    )
    return replace(tool, aliases=("find",)) if chance.random() < 0.1 else tool


def changed(chance: random.Random, groups: dict[str, list[Tool]], number: int) -> None:
    """One to three tools come, go or change, in any server, which may be new."""
    for each in range(chance.randint(1, 3)):
        server = chance.choice(SERVERS)
        tools = groups.setdefault(server, [])
        new = a_tool(chance, server, 10 * number + each)
        if tools and chance.random() < 0.4:
            del tools[chance.randrange(len(tools))]
        elif new.id not in {tool.id for tool in tools}:
            tools.insert(chance.randint(0, len(tools)), new)
        if not tools:
            del groups[server]


def listed(groups: Mapping[str, Sequence[Tool]]) -> tuple[tuple[Tool, ...], dict[str, Server]]:
    servers = {name: Server(name=ServerName(name), description=f"All about {name}") for name in groups}
    return tuple(tool for of_server in groups.values() for tool in of_server), servers


def assert_alike(one: WordIndexes, other: WordIndexes) -> None:
    for query in QUERIES:
        spans = clauses(query)
        assert np.array_equal(one.lexical.scores(query), other.lexical.scores(query))
        np.testing.assert_allclose(one.names.scores(query, spans), other.names.scores(query, spans), atol=1e-6)
        assert np.array_equal(one.service_names.scores(query), other.service_names.scores(query))
        assert one.exact_names.find(query).tolist() == other.exact_names.find(query).tolist()
        assert one.mentions.of(query) == other.mentions.of(query)
    assert one.suspected.tolist() == other.suspected.tolist()


@pytest.mark.requirement("library.changed-tools")
@pytest.mark.parametrize("seed", range(4))
def test_indexes_that_were_changed_many_times_rank_like_new_ones(seed: int) -> None:
    chance = random.Random(seed)
    groups: dict[str, list[Tool]] = {}
    for number in range(40):
        changed(chance, groups, 1000 + number)
    grown = WordIndexes(*listed(groups))
    grown.build()
    for number in range(12):
        changed(chance, groups, number)
        grown = WordIndexes(*listed(groups), before=grown)
        grown.build()
        assert_alike(grown, WordIndexes(*listed(groups)))


def test_a_change_does_not_touch_the_indexes_that_it_started_from() -> None:
    chance = random.Random(7)
    groups = {"github": [fake_tool(f"create_issue_{number}", TEXTS[0], server="github") for number in range(30)]}
    before = WordIndexes(*listed(groups))
    before.build()
    expected = WordIndexes(*listed(groups))
    expected.build()

    for number in range(5):
        changed(chance, groups, number)
        WordIndexes(*listed(groups), before=before).build()

    assert_alike(before, expected)


def test_only_the_tools_that_came_are_read() -> None:
    groups = {"github": [fake_tool(f"create_issue_{number}", server="github") for number in range(50)]}
    before = WordIndexes(*listed(groups))
    before.build()
    groups["github"].append(fake_tool("merge_branch", server="github"))
    after = WordIndexes(*listed(groups), before=before)

    assert after._change is not None
    assert [each.tool.name for each in after._change.new] == ["merge_branch"]
    assert not after._change.gone


def test_a_server_that_is_described_anew_has_all_its_tools_read_again() -> None:
    groups = {"github": [fake_tool(f"create_issue_{number}", server="github") for number in range(10)]}
    tools, servers = listed(groups)
    before = WordIndexes(tools, servers)
    before.build()
    other = {"github": replace(servers["github"], description="Tickets of mountaineers")}
    after = WordIndexes(tools, other, before=before)

    assert_alike(after, WordIndexes(tools, other))
    assert after.lexical.scores("mountaineers").all()


def test_equal_tools_that_a_server_lists_again_are_not_read_again() -> None:
    def tools() -> dict[str, list[Tool]]:
        return {"github": [fake_tool(f"create_issue_{number}", server="github") for number in range(50)]}

    before = WordIndexes(*listed(tools()))
    before.build()
    after = WordIndexes(*listed(tools()), before=before)

    assert after._change is not None
    assert not after._change.new
