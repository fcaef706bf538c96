from __future__ import annotations

from collections import Counter
from dataclasses import replace
from random import Random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pegboard import Tool, ToolId
from pegboard.model import Server, ServerName
from pegboard.retrieval import categories_of, describe_category
from pegboard.settings import CategoryMode, load_settings

NOUNS = ("issue", "branch", "label", "release", "pull_request")
VERBS = ("create", "get", "list", "update", "delete")


def tools(server: str, *names: str) -> list[Tool]:
    return [Tool(id=ToolId(server, name)) for name in names]


FORGE = tools("forge", *(f"{verb}_{noun}" for noun in NOUNS for verb in VERBS), "whoami")
CLOCK = tools("clock", "get_time", "convert_time")
ODD = tools("odd", *(f"{letter}{letter}x" for letter in "abcdefghijklmnopqrstuvw"))


def sizes(given: list[Tool], mode: CategoryMode = "auto", vectors: np.ndarray | None = None) -> dict[str, int]:
    return dict(Counter(categories_of(given, mode, {}, vectors).values()))


def test_a_small_server_is_one_category_and_a_large_one_several() -> None:
    assert sizes(FORGE + CLOCK) == {
        **{f"forge: {noun.replace('_', ' ')}": 5 for noun in NOUNS},
        "forge": 1,
        "clock": 2,
    }


def test_servers_can_be_left_whole() -> None:
    assert sizes(FORGE + CLOCK, "server") == {"forge": 26, "clock": 2}


def test_small_servers_are_split_by_names_where_that_is_asked_for() -> None:
    found = sizes(tools("notes", "add_note", "get_note", "list_notes", "add_tag", "get_tag", "list_tags"), "prefix")

    assert found == {"notes: tag": 3, "notes: note": 3}


def test_names_that_tell_nothing_leave_it_to_the_meaning() -> None:
    meaning = np.zeros((len(ODD), 4), np.float32)
    meaning[range(len(ODD)), [place % 3 for place in range(len(ODD))]] = 1

    assert sizes(ODD) == {"odd": 23}
    assert sorted(sizes(ODD, "auto", meaning).values()) == [7, 8, 8]
    assert sorted(sizes(ODD + FORGE, "clusters", np.concatenate([meaning, np.ones((26, 4), np.float32)])).values()) == [
        7,
        8,
        8,
        26,
    ]


def test_names_come_before_meaning() -> None:
    noise = np.random.default_rng(1).normal(size=(26, 4)).astype(np.float32)

    assert sizes(FORGE, "auto", noise) == sizes(FORGE)


def test_configuration_comes_first_then_what_the_server_says() -> None:
    stated = [replace(tool, category="Time") for tool in CLOCK]
    found = categories_of(FORGE[:5] + stated, "auto", {"Bugs": ["forge/*issue*", "clock/convert*"], "No": ["*_issue"]})

    assert list(found.values()) == ["Bugs"] * 5 + ["Time", "Bugs"]


def test_what_has_a_category_does_not_count_for_the_size_of_its_server() -> None:
    stated = [
        replace(tool, category="Said") if "branch" in tool.name or "label" in tool.name else tool for tool in FORGE
    ]

    assert sizes(stated) == {"Said": 10, "forge": 16}


def test_categories_are_in_the_order_of_the_tools() -> None:
    given = [*CLOCK, *FORGE]

    assert list(categories_of(given)) == [tool.id for tool in given]


def test_a_category_is_described_by_its_server_or_by_what_its_tools_do() -> None:
    server = Server(name=ServerName("forge"), description="Issues  and\ncode.")

    assert describe_category(FORGE, server) == "Issues and code."
    assert describe_category(FORGE[:5]) == "create, delete, get, list, update: issue"
    assert describe_category(FORGE[:1], Server(name=ServerName("forge"))) == "create: issue"
    assert describe_category([], Server(name=ServerName("x"), description="y" * 300)) == "y" * 120 + "…"
    assert describe_category(tools("a", "echo")) == "echo"


def test_categories_are_configured_in_the_file(tmp_path_factory: pytest.TempPathFactory) -> None:
    file = tmp_path_factory.mktemp("settings") / "pegboard.toml"
    file.write_text('categories = "prefix"\n[category_patterns]\nBugs = ["forge/*issue*"]\n', "utf-8")

    settings = load_settings([file])

    assert (settings.categories, settings.category_patterns) == ("prefix", {"Bugs": ("forge/*issue*",)})


word = st.sampled_from(["get", "list", "create", "issue", "page", "file", "user", "team", "row", "x"])
boards = st.lists(
    st.builds(ToolId, st.sampled_from(["a", "b"]), st.lists(word, min_size=1, max_size=4).map("_".join)),
    unique=True,
    max_size=80,
).map(lambda ids: [Tool(id=each) for each in ids])
modes: st.SearchStrategy[CategoryMode] = st.sampled_from(["auto", "server", "prefix", "clusters"])


def meaning_of(given: list[Tool]) -> np.ndarray:
    rows = [np.random.default_rng(list("".join(tool.id).encode())).normal(size=8) for tool in given]
    return np.array(rows, np.float32).reshape(len(given), 8)


@given(boards, modes)
def test_every_tool_has_one_category_of_its_server_and_they_are_few(given: list[Tool], mode: CategoryMode) -> None:
    found = categories_of(given, mode, {}, meaning_of(given))

    assert list(found) == [tool.id for tool in given]
    assert all(category.split(": ")[0] == tool.server for tool, category in found.items())
    assert all(len({found[tool] for tool in found if tool.server == server}) <= 20 for server in "ab")


@given(boards, modes, st.integers(0, 100))
def test_categories_do_not_depend_on_the_order_of_the_tools(given: list[Tool], mode: CategoryMode, seed: int) -> None:
    shuffled = Random(seed).sample(given, len(given))

    one, other = (categories_of(each, mode, {}, meaning_of(each)) for each in (given, shuffled))

    assert dict(one) == dict(other)
