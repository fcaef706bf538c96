from __future__ import annotations

from typing import Any

import pytest

from tuning.cleaning import NearDuplicates, clean_tools, product


def tool(server: str, name: str, description: str) -> dict[str, Any]:
    return {"server": server, "name": name, "description": description, "input_schema": None}


SCORED = [tool("github", "create_issue", "Open a new issue in a repository of GitHub, with a title and a body.")]
CHEAP = "Find the cheapest flight between two airports on a day."


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("Open a new issue in a repository of GitHub, with a title and a body", True),
        ("open a NEW issue in a repository of GitHub with a title", True),
        ("Close an issue of a repository, and say why", False),
        ("", False),
    ],
)
def test_a_text_is_a_near_duplicate_by_the_word_triples_it_shares(text: str, found: bool) -> None:
    assert NearDuplicates([tool["description"] for tool in SCORED]).has(text) is found


def test_a_tool_that_is_in_a_scored_set_goes_whatever_its_server_is_called() -> None:
    copied = tool("forge", "create_issue", SCORED[0]["description"])
    others = [tool("forge", f"other_{number}", f"{CHEAP} Variant {number}.") for number in range(9)]

    assert clean_tools([copied, *others], SCORED) == others


def test_a_server_goes_whole_when_its_product_or_much_of_it_is_in_a_scored_set() -> None:
    by_product = tool("@acme/github-mcp-server", "star", "Star a repository.")
    spoilt = [tool("forge", "create_issue", SCORED[0]["description"]), tool("forge", "search_flights", CHEAP)]
    clean = tool("travel", "search_flights", CHEAP)

    assert clean_tools([by_product, *spoilt, clean], SCORED) == [clean]


@pytest.mark.parametrize(
    ("server", "expected"), [("@acme/github-mcp-server", "github"), ("mcp-server-time", "time"), ("github", "github")]
)
def test_a_product_is_its_name_without_what_many_servers_have_in_theirs(server: str, expected: str) -> None:
    assert product(server) == expected
