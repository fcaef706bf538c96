"""Boards that change step by step decide, search and name as boards that are made anew of the same tools."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest

from pegboard import Board, Tool, ToolId
from pegboard.testing import FakeEncoder, fake_tool

SERVERS = ("local", "github", "harbour", "mail box")
VERBS = ("create", "list", "send", "find", "transfer to")
THINGS = ("issue", "tide", "message", "hotel", "harbour report", "tool")
TEXTS = (
    "When the tide is high at a harbour, for sailors.",
    "Creates an issue with a title and labels in a repository.",
    "Sends a message to the members of a channel. Lists files of a folder by date.",
    "Find me a hotel in Oslo. What is the weather there? Please open an issue for me.",
    "weather restaurant hotel table booking menu map route distance station train flight ticket airport city",
    "",
)
QUERIES = ("when is high tide at the harbour?", "github: create an isue", "send a message and find a hotel", "文件")
OPTIONS: dict[str, Any] = {
    "always_available": ("*/find_hotel*", "list_tide"),
    "rules": [{"tools": "github/*", "scope": "code"}, {"tools": "send_*", "requires": ["milestone_reached:written"]}],
    "k": 4,
}


def a_tool(chance: random.Random, number: int) -> Tool:
    name = f"{chance.choice(VERBS)}_{chance.choice(THINGS)}".replace(" ", chance.choice("_."))
    return fake_tool(chance.choice((name, f"{name}_{number}")), chance.choice(TEXTS), server=chance.choice(SERVERS))


def without_time(decision: Any) -> dict[str, Any]:
    said: dict[str, Any] = decision.to_dict()
    said.pop("latency_ms")
    return said


@pytest.mark.requirement("library.changed-tools")
@pytest.mark.parametrize("seed", range(3))
def test_a_board_that_changed_is_the_board_of_its_tools(seed: int, tmp_path: Path) -> None:
    chance = random.Random(seed)
    folders: dict[str, Any] = {"cache_dir": tmp_path, "state_dir": tmp_path}
    tools = {tool.id: tool for tool in (a_tool(chance, number) for number in range(40))}
    with Board(list(tools.values()), encoder=FakeEncoder(), **folders, **OPTIONS) as board:
        board.route_now("x").tools_for("openai")
        for number in range(100, 106):
            came = [a_tool(chance, 10 * number + each) for each in range(chance.randint(0, 3))]
            gone = chance.sample(sorted(tools), chance.randint(0, 3))
            board.add_tools(came)
            tools |= {tool.id: tool for tool in came}
            board.remove_tools([str(tool) for tool in gone])
            for tool in gone:
                del tools[tool]
            expected = Board(board.catalog, encoder=FakeEncoder(), **folders, **OPTIONS)
            with expected:
                assert {tool.id for tool in expected.catalog.tools} == tools.keys()
                assert_same(board, expected)


def assert_same(board: Board, expected: Board) -> None:
    for query in QUERIES:
        for scopes in (frozenset[str](), frozenset({"code"})):
            found = board.route_now(query, scopes=scopes)
            anew = expected.route_now(query, scopes=scopes)
            assert without_time(found) == without_time(anew)
            assert found.reachable == anew.reachable
            assert dict(found.names) == dict(anew.names)
        assert board.search_now(query).to_dict() == expected.search_now(query).to_dict()
    assert board.catalog.fingerprint == expected.catalog.fingerprint
    assert board.catalog.token_counts == expected.catalog.token_counts
    assert dict(board.catalog.position) == dict(expected.catalog.position)


def test_equal_ids_on_both_sides_of_a_change_are_told_apart(tmp_path: Path) -> None:
    folders: dict[str, Any] = {"cache_dir": tmp_path, "state_dir": tmp_path}
    with Board([{"name": "tide"}, {"name": "wind"}], encoder=FakeEncoder(), **folders) as board:
        board.route_now("tide").tools_for("openai")
        board.add_tools([{"name": "tide", "description": "When the tide is high"}])

        assert board.catalog[ToolId("local", "tide")].description == "When the tide is high"
        assert board.route_now("tide").tools_for("openai")[0]["function"]["description"] == "When the tide is high"
