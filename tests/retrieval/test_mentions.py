"""What a request names of a catalog: tools, objects and servers."""

from __future__ import annotations

import pytest

from pegboard.model import Tool
from pegboard.retrieval.mentions import IDENTIFIER, Mentions
from pegboard.testing import fake_tool

OBJECTS = ("invoice", "customer", "ticket", "calendar_event", "payroll_run")
TOOLS = [fake_tool(f"{verb}_{name}", server="office") for name in OBJECTS for verb in ("create", "get", "delete")]


def objects(query: str, tools: list[Tool] = TOOLS) -> set[str]:
    """The shortest name of each object that is named."""
    return {min((tools[place].name for place in group), key=len) for group in Mentions(tools).of(query).objects}


@pytest.mark.requirement("A6")
@pytest.mark.parametrize(
    ("query", "named"),
    [
        ("Get invoice 7 and the customer record of Acme", {"get_invoice", "get_customer"}),
        ("Delete all tickets", {"get_ticket"}),
        ("Start the payroll run", {"get_payroll_run"}),
        ("Put a meeting on the calendar", {"get_calendar_event"}),
        ("What is the weather?", set()),
        ("", set()),
    ],
)
def test_an_object_is_named_by_its_words_in_any_form(query: str, named: set[str]) -> None:
    assert objects(query) == named


@pytest.mark.requirement("A6")
def test_of_an_object_of_two_words_one_is_enough_only_where_no_other_has_it() -> None:
    tools = [fake_tool(name, server="wiki") for name in ("get_page_history", "get_page_views", "get_label", "add_tag")]

    assert objects("Show the history", tools) == {"get_page_history"}
    assert objects("Show the page", tools) == set()


@pytest.mark.requirement("A6")
def test_tools_are_named_as_they_are_written_and_servers_by_their_names() -> None:
    tools = [
        fake_tool("create_issue", server="github"),
        fake_tool("createIssue", server="jira"),
        fake_tool("search", server="jira"),
    ]
    found = Mentions(tools).of("call create_issue, then search in Jira")

    assert found.tools == {0}
    assert found.servers == (frozenset({1, 2}),)
    assert Mentions(tools[1:]).of("search in Jira").servers == ()


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("call create_issue, getUser2 and a.b-c.", ["create_issue", "getUser2", "a.b-c"]),
        ("_private __all__ trailing_ x_ _x plain", ["__all__"]),
        ("HTTPServer XMLparseAll _fooBar_ 2.5 end.", ["parseAll", "fooBar_", "2.5"]),
    ],
)
def test_a_word_is_spelled_like_a_tool_name_by_a_sign_or_a_capital_within(text: str, names: list[str]) -> None:
    assert IDENTIFIER.findall(text) == names


@pytest.mark.parametrize("letters", ["a", "Ab", "A", "é"])
def test_a_long_word_is_read_once(letters: str) -> None:
    assert objects(f"Delete all tickets of {letters * 300_000}") == {"get_ticket"}
