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
        ("what time is it, and how much slack is there?", set()),  # ordinary words
        ("a ticket on that mcp server", set()),
        ("", set()),
    ],
)
def test_the_tools_of_a_named_service_score(query: str, servers: set[str]) -> None:
    assert named(query, board()) == servers


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
