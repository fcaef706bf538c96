"""Services that a request names."""

from __future__ import annotations

import numpy as np
import pytest

from pegboard.model import Server, ServerName, Tool
from pegboard.retrieval import CachedEncoder, Retriever, ranker
from pegboard.retrieval.service_names import MOST_WORDS, ServiceNames
from pegboard.stores import MemoryEmbeddings
from pegboard.testing import FakeEncoder, fake_tool

VENDORS = ("zendesk", "jira-mcp-server", "slack", "time", "hubspot", "asana", "trello", "gitlab", "stripe", "twilio")


def board() -> list[Tool]:
    tools = [fake_tool("create_ticket", "Create a ticket for a request", server=vendor) for vendor in VENDORS]
    return [*tools, *(fake_tool(f"acme_{what}", f"{what} it", server="erp") for what in ("buy", "sell", "list"))]


def named(query: str, tools: list[Tool]) -> set[str]:
    """The servers that score most, if any does."""
    scores = ServiceNames(tools).scores(query)
    return {tools[place].server for place in np.flatnonzero(scores == scores.max())} if scores.any() else set()


@pytest.mark.parametrize(
    ("query", "servers"),
    [
        ("Please create a ticket in Zendesk and tell the customer that we are on it", {"zendesk"}),
        ("jira: create a ticket", {"jira-mcp-server"}),
        ("time: create a ticket", {"time"}),
        ("post it to Slack", {"slack"}),
        ("buy ten of them with acme", {"erp"}),
        ("post it in slack, please", {"slack"}),
        ("using slack tell them that we are late", set()),  # it may be any word there
        ("the parcel must be there on time", set()),
        ("there is little left in the slack", set()),
        ("what time is it, and how much slack is there?", set()),  # ordinary words
        ("a ticket on that mcp server", set()),
        ("", set()),
    ],
)
def test_the_tools_of_a_named_service_score(query: str, servers: set[str]) -> None:
    assert named(query, board()) == servers


def test_ordinary_words_in_the_place_of_a_name_name_a_service_of_exactly_these_words() -> None:
    maps = [fake_tool("find_place", "Find a place", server=server) for server in ("google_maps", "google_drive")]
    tools = [*board(), *maps]

    assert named("find a bakery with google maps", tools) == {"google_maps"}
    assert named("find a bakery in google", tools) == set()
    assert named("find a bakery with the old maps of google for me", tools) == set()


def test_a_whole_name_in_its_place_says_more_than_one_of_its_words() -> None:
    tools = [*board(), *(fake_tool("sync", server=server) for server in ("zendesk-chat", "zendesk-guide"))]

    assert named("answer the customer in zendesk chat", tools) == {"zendesk-chat"}


def test_the_owner_of_a_server_is_no_part_of_its_whole_name() -> None:
    assert named("keep it in notion.", [*board(), fake_tool("add_page", server="@harbour/notion-mcp")]) == {
        "@harbour/notion-mcp"
    }


def test_a_word_that_many_servers_use_names_none() -> None:
    tools = [*board(), *(fake_tool("sync", "Sync with zendesk", server=f"sync{number}") for number in range(9))]

    assert ServiceNames(tools).scores("a ticket in zendesk").max() < ServiceNames(board()).scores("in zendesk").max()


def test_a_server_with_many_names_is_found_by_none() -> None:
    many = "-".join(("shopify", "notionhq", "airtable", "mailgun", "sendgrid"))

    assert len(many.split("-")) > MOST_WORDS
    assert named("orders in shopify", [*board(), fake_tool("assist", "Helps", server=many)]) == set()


def test_one_server_is_never_named() -> None:
    assert not ServiceNames([fake_tool("create_ticket", server="zendesk")]).scores("a ticket in zendesk").any()
    assert ServiceNames([]).scores("anything").shape == (0,)


async def test_the_named_service_comes_first_among_equals() -> None:
    tools = board()
    servers = {tool.server: Server(name=ServerName(tool.server)) for tool in tools}
    encoder = CachedEncoder(FakeEncoder(), MemoryEmbeddings())
    ranking = ranker("hybrid", Retriever(tools, servers, documents=encoder, queries=encoder))

    values = (await ranking.score("Create a ticket for the request that came in this morning, on Twilio")).values

    assert tools[int(values.argmax())].server == "twilio"
