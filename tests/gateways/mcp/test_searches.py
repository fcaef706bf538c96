"""The profile `keyword` as the lazy-loading PRD has it, and searches that match nothing."""

from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from typing import Any

import mcp_types as types
import pytest
from mcp import Client

from pegboard.gateways.mcp.gateway.meta_results import named_category
from pegboard.model import ToolId
from servers.scripted import TOOLS

OpenClient = Callable[..., AbstractAsyncContextManager[Client]]

SEED: dict[str, Any] = {
    "profile": "keyword",
    "eager_tools": 0,
    "eager_tokens": 0,
    "category_patterns": {"Failures": ["scripted/fails", "scripted/raises", "scripted/die"]},
    "category_descriptions": {"Failures": "Everything that ends badly: crash, refuse, give up"},
}
FAILURES = {"fails", "raises", "die"}


async def ask(client: Client, name: str, /, **arguments: Any) -> dict[str, Any]:
    """What a meta-tool answered."""
    (text,) = (await client.call_tool(name, arguments)).content
    assert isinstance(text, types.TextContent)
    answer: dict[str, Any] = json.loads(text.text)
    return answer


def names(answer: dict[str, Any]) -> list[str]:
    return [tool["name"] for tool in answer["tools"]]


@pytest.mark.requirement("B10")
async def test_the_keyword_profile_sends_no_summary_of_the_tools(client_of: OpenClient) -> None:
    async with client_of(**SEED) as client:
        search = next(tool for tool in (await client.list_tools()).tools if tool.name == "search_tools")

    assert "Available" not in (search.description or "")
    assert not any(tool.name in (search.description or "").split() for tool in TOOLS)


@pytest.mark.requirement("B10")
async def test_it_finds_up_to_twenty_tools_each_with_its_category(client_of: OpenClient) -> None:
    async with client_of(**SEED) as client:
        answer = await ask(client, "search_tools", query="scripted a with to answer return text numbers")

    assert 5 < len(answer["tools"]) <= 20
    assert {tool["category"] for tool in answer["tools"]} <= {"scripted", "Failures"}


@pytest.mark.requirement("B10")
async def test_what_matches_nothing_finds_nothing_and_says_where_to_look(client_of: OpenClient) -> None:
    async with client_of(**SEED, always_available=("echo", "add")) as client:
        answer = await ask(client, "search_tools", query="xyzzy")

    assert answer["tools"] == []
    assert "list_tool_categories" in answer["why"]
    assert set(answer["categories"]) == {"scripted", "Failures"}


@pytest.mark.requirement("B10")
async def test_so_it_is_under_hybrid(client_of: OpenClient) -> None:
    async with client_of(eager_tools=0, eager_tokens=0, always_available=("echo", "add")) as client:
        answer = await ask(client, "search_tools", query="xyzzy")

    assert answer["tools"] == []
    assert answer["categories"] == ["scripted"]


@pytest.mark.requirement("B10")
@pytest.mark.parametrize("query", ["failures", "failure management", "Tools for failures", "all the failures tools"])
async def test_a_query_that_names_a_category_finds_all_of_it_and_nothing_else(
    client_of: OpenClient, query: str
) -> None:
    async with client_of(**SEED) as client:
        whole = await ask(client, "search_tools", query=query)
        other = await ask(client, "search_tools", query="answer with a failure")

    assert set(names(whole)) == FAILURES
    assert set(names(other)) != FAILURES


@pytest.mark.requirement("B10")
async def test_the_words_of_a_categorys_description_find_its_tools_and_are_shown(client_of: OpenClient) -> None:
    async with client_of(**SEED) as client:
        found = await ask(client, "search_tools", query="crash")
        listed = await ask(client, "list_tool_categories")

    assert set(names(found)) == FAILURES
    described = {each["category"]: each["description"] for each in listed["categories"]}
    assert described["Failures"] == SEED["category_descriptions"]["Failures"]


@pytest.mark.requirement("B10")
async def test_invoke_takes_the_names_that_the_seed_gives_its_arguments(client_of: OpenClient) -> None:
    async with client_of(**SEED) as client:
        result = await client.call_tool("invoke_tool", {"toolName": "add", "args": {"a": 1, "b": 2}})
        both = await client.call_tool("invoke_tool", {"toolName": "add", "name": "echo", "args": {}})

    assert not result.is_error
    assert both.is_error


def test_a_servers_name_before_its_group_may_be_said_or_not() -> None:
    categories = {ToolId("github", name): "github: issues" for name in ("a", "b")} | {ToolId("jira", "c"): "jira"}

    assert named_category("issue management", categories) == "github: issues"
    assert named_category("manage github issues", categories) == "github: issues"
    assert named_category("jira tools", categories) == "jira"
    assert named_category("create an issue", categories) is None
    assert named_category("manage", categories) is None
    assert named_category("", categories) is None
