from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pegboard import Catalog, Tool
from pegboard.catalog import BpeCounter
from pegboard.model import Server, ServerName
from pegboard.routing.pool import summary_pool
from pegboard.testing import fake_tool

COUNTER = BpeCounter()


def servers(count: int, description: str = "What it is about") -> dict[str, Server]:
    return {f"server{i}": Server(name=ServerName(f"server{i}"), description=description) for i in range(count)}


def tools(count: int, per_server: int, summary: str = "does one thing well") -> list[Tool]:
    return [
        replace(fake_tool(f"tool_{i}", server=f"server{i // per_server}"), summary=f"tool_{i}: {summary}")
        for i in range(count)
    ]


@pytest.mark.requirement("000.phase1")
def test_without_a_budget_every_tool_has_a_line_under_its_server(town: Catalog) -> None:
    pool = summary_pool(town.tools, town.servers, COUNTER, None)

    assert pool.text.splitlines()[:4] == [
        "[library]",
        "renew_loan: Extend the due date of a borrowed book.",
        "reserve_book: Put a book aside for a reader until it is picked up.",
        "[weather]",
    ]
    assert len(pool.text.splitlines()) == len(town) + len(town.servers)
    assert pool.tokens == COUNTER.count([pool.text])[0]


@pytest.mark.parametrize(
    ("budget", "starts"),
    [
        (3000, "[server0]\ntool_0: does one thing well\ntool_1"),
        (600, "[server0] tool_0, tool_1, tool_2"),
        (200, "[server0] 10 tools: What it is about\n[server1] 10 tools"),
        (60, "[server0] 10 tools: What it is about\n[server1] 10 tools"),
    ],
)
def test_what_does_not_fit_is_told_more_briefly(budget: int, starts: str) -> None:
    pool = summary_pool(tools(100, 10), servers(10), COUNTER, budget)

    assert pool.text.startswith(starts)
    assert pool.tokens <= budget


SIZES = (60, 3, 40, 1, 5)


def unequal() -> list[Tool]:
    """Servers of these sizes, whose names alone take more than 350 tokens and less than 500."""
    return [
        replace(fake_tool(f"tool_{i}", server=f"server{number}"), summary=f"tool_{i}: does one thing well")
        for number, size in enumerate(SIZES)
        for i in range(size)
    ]


def names_of(most: int) -> str:
    """At most so many names of each server, as the pool lists them."""
    lines = []
    for number, size in enumerate(SIZES):
        names = [f"tool_{i}" for i in range(min(size, most))]
        more = [f"… {size - most} more"] if size > most else []
        lines.append(f"[server{number}] {', '.join([*names, *more])}")
    return "\n".join(lines)


@pytest.mark.parametrize("budget", [300, 350, 400])
def test_where_the_names_do_not_fit_only_the_longest_lists_are_cut_and_by_no_more_than_they_must(budget: int) -> None:
    text = summary_pool(unequal(), {}, COUNTER, budget).text

    shown = text.splitlines()[0].count("tool_")
    assert 5 < shown < 60
    assert text == names_of(shown)
    assert COUNTER.count([names_of(shown + 1)])[0] > budget


def test_where_less_than_half_of_the_names_fit_the_servers_are_described() -> None:
    lines = summary_pool(unequal(), servers(5), COUNTER, 150).text.splitlines()

    assert lines[0] == "[server0] 60 tools: What it is about"


def test_servers_that_do_not_fit_are_counted() -> None:
    pool = summary_pool(tools(100, 10), servers(10), COUNTER, 60)

    shown = pool.text.count("[server")
    assert 0 < shown < 10
    assert pool.text.endswith(f"… and {10 - shown} more servers")


@pytest.mark.requirement("design.pool-budget")
@given(
    count=st.integers(0, 300),
    per_server=st.integers(1, 60),
    budget=st.integers(0, 1500),
    text=st.text(max_size=40),
)
def test_the_pool_never_exceeds_its_budget_at_any_number_of_tools(
    count: int, per_server: int, budget: int, text: str
) -> None:
    pool = summary_pool(tools(count, per_server, text), servers(300, text), COUNTER, budget)

    assert pool.tokens <= budget
    assert pool.tokens == COUNTER.count([pool.text])[0]


@pytest.mark.requirement("design.pool-budget")
@pytest.mark.parametrize("count", [1, 10, 100, 1_000, 20_000])
def test_the_pool_of_twenty_thousand_tools_costs_no_more_than_that_of_ten(count: int) -> None:
    assert summary_pool(tools(count, 7), servers(3_000), COUNTER, 400).tokens <= 400


def test_a_servers_own_words_take_one_short_line() -> None:
    chatty = servers(1, "Line one.\n\n" + "and more " * 100)

    line = summary_pool(tools(200, 200), chatty, COUNTER, 60).text

    assert line.startswith("[server0] 200 tools: Line one. and more")
    assert len(line) < 160
    assert "\n" not in line


def test_no_tools_have_an_empty_pool() -> None:
    assert summary_pool([], {}, COUNTER, None).text == ""
    assert summary_pool([], {}, COUNTER, 0).tokens == 0


def test_a_budget_too_small_for_a_word_gives_no_word() -> None:
    assert summary_pool(tools(10, 1), servers(10), COUNTER, 1).text == ""


@given(
    st.integers(1, 300), st.integers(1, 40), st.integers(1, 1500), st.sampled_from(["", "does one thing", "你好 " * 30])
)
def test_a_pool_is_the_first_form_that_fits_as_if_all_of_each_had_been_counted(
    count: int, per_server: int, budget: int, summary: str
) -> None:
    known = tools(count, per_server, summary)
    pool = summary_pool(known, servers(40), COUNTER, budget)
    everything = summary_pool(known, servers(40), COUNTER, None)

    assert (pool == everything) == (everything.tokens <= budget)
    assert pool.tokens <= budget
