"""Names in lines: nothing is lost, and nothing but the names and their order decides."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pegboard.catalog import BpeCounter
from pegboard.catalog.name_lines import how_to_read, name_lines, name_lines_within

WORDS = st.sampled_from(["mcp", "jira", "get", "issue", "list", "Add", "7", "ü"])
SEPARATORS = st.sampled_from(["_", "__", "-", ".", "/"])
NAMES = st.lists(
    st.lists(st.tuples(WORDS, SEPARATORS), min_size=1, max_size=5).map(
        lambda parts: "".join(word + between for word, between in parts)
    )
    | st.lists(WORDS, min_size=1, max_size=4).map("_".join),
    max_size=40,
)


def read(text: str) -> list[str]:
    """The names, as `HOW` says."""
    lines = (line.rpartition(": ") for line in text.split("\n"))
    return [prefix + rest for prefix, _, of_line in lines for rest in of_line.split(", ") if rest]


@pytest.mark.requirement("llm.names-in-few-tokens")
@given(names=NAMES)
def test_every_name_can_be_read_once(names: list[str]) -> None:
    assert sorted(read(name_lines(names))) == sorted(set(names))


@pytest.mark.requirement("llm.names-in-few-tokens")
@given(names=NAMES)
def test_the_text_is_never_longer_than_the_names_with_commas(names: list[str]) -> None:
    assert len(name_lines(names)) <= len(", ".join(dict.fromkeys(names)))


def test_what_names_begin_with_is_said_once() -> None:
    names = [f"mcp__jira__{verb}_{of}" for verb in ("get", "add") for of in "abcdefgh"]

    text = name_lines(["Read", *names, "Bash"])

    assert text == "Read, Bash\nmcp__jira__get_: a, b, c, d, e, f, g, h\nmcp__jira__add_: a, b, c, d, e, f, g, h"
    assert how_to_read(text)


def test_names_that_share_nothing_are_just_listed() -> None:
    text = name_lines(["Read", "Bash", "mcp__jira__get", "mcp__jira__add"])

    assert text == "Read, Bash, mcp__jira__get, mcp__jira__add"
    assert not how_to_read(text)


def test_where_not_all_names_fit_no_beginning_loses_all_of_its_names() -> None:
    names = [f"mcp__{server}__do_{number}" for server in ("big", "small", "last") for number in range(40)][:85]

    text = name_lines_within(names, BpeCounter(), 70)

    first, small, last = text.split("\n")
    assert first.startswith("mcp__big__do_: 0, 1, ")
    assert small.startswith("mcp__small__do_: 0, 1, ")
    assert last.startswith("mcp__last__do_: 0, 1, ")
    assert first.endswith(" more")


@given(names=NAMES, budget=st.integers(0, 80))
def test_a_text_keeps_to_its_budget_and_is_whole_where_that_fits(names: list[str], budget: int) -> None:
    counter = BpeCounter()
    text, whole = name_lines_within(names, counter, budget), name_lines(names)

    assert counter.count([text])[0] <= budget
    assert (text == whole) == (counter.count([whole])[0] <= budget)
