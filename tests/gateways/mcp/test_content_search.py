"""Prompts and resources are found by the search for tools, and read for a model that can only call tools."""

from __future__ import annotations

import json
import sys
import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from mcp import Client

from pegboard import Settings
from pegboard.compose import default_parts
from pegboard.gateways.mcp import open_gateway
from pegboard.gateways.mcp.resources import content_search as module
from pegboard.gateways.mcp.resources.content_search import MOST_CHARACTERS, MOST_FOUND, ContentSearch
from pegboard.gateways.mcp.resources.skills import SkillLibrary
from pegboard.gateways.mcp.transport.gateway_server import wire
from pegboard.retrieval.document_index import DocumentIndex, Documents
from pegboard.settings.server_spec import ServerSpec
from pegboard.stores import MemoryEmbeddings
from pegboard.testing import FakeEncoder
from upstream_specs import scripted

LIBRARY = f"""
from mcp.server.mcpserver import MCPServer

server = MCPServer("library")


@server.tool()
def lend(book: str) -> str:
    "Lend a book to a reader"
    return book


@server.prompt()
def monthly_report() -> str:
    "Write the monthly report of the library's loans"
    return "List the loans of this month."


@server.prompt()
def overdue_letter(reader: str, tone: str = "kind") -> str:
    "Write a reminder letter to a reader whose loan is overdue"
    return reader


@server.resource("library://rules/opening-hours", description="When the library is open, by weekday")
def opening_hours() -> str:
    return "Monday to Friday, 9 to 17."


@server.resource("library://catalogue/whole", description="The whole catalogue of shelf marks")
def catalogue() -> str:
    return "x" * {MOST_CHARACTERS + 1}


@server.resource("library://cover/image", mime_type="image/png", description="A cover image of the annual brochure")
def cover() -> bytes:
    return b"png"


@server.resource("library://book/{{number}}", description="The record of one book by its inventory number")
def book(number: str) -> str:
    return f"Record {{number}}."


server.run()
"""

Result = dict[str, Any]


@asynccontextmanager
async def library(folder: Path, **more: Any) -> AsyncIterator[Client]:
    program = folder / "library.py"
    program.write_text(LIBRARY)
    spec = ServerSpec(name="library", command=sys.executable, args=(str(program),))
    options: dict[str, Any] = {"cache_dir": folder, "start_wait": 60.0, "connect_timeout": 60.0} | more
    settings = Settings(servers={"library": spec, "other": scripted("other")}, exposure="static", **options)
    parts = default_parts(settings, encoder=FakeEncoder(), embeddings=MemoryEmbeddings())
    async with open_gateway(settings, parts) as gateway, Client(wire(gateway), cache=None) as client:
        await client.list_prompts()  # a search waits only a moment for the lists of a busy machine
        await client.list_resources()
        await client.list_resource_templates()
        yield client


async def answered(of: Client, name: str, **arguments: Any) -> Result:
    result = await of.call_tool(name, arguments)
    found: Result = json.loads(result.content[0].text)  # type: ignore[union-attr]
    return found


async def described(of: Client, *names: str) -> Result:
    return await answered(of, "describe_tools", names=list(names))


@pytest.mark.requirement("022.search-all-kinds")
@pytest.mark.parametrize(
    ("query", "kind", "identity", "first"),
    [
        ("monthly report of the loans", "prompts", "name", "monthly_report"),
        ("remind a reader of an overdue loan by letter", "prompts", "name", "overdue_letter"),
        ("opening hours of the library", "resources", "uri", "library://rules/opening-hours"),
        ("record of a book by inventory number", "resourceTemplates", "uriTemplate", "library://book/{number}"),
    ],
)
async def test_a_search_finds_prompts_and_resources(
    tmp_path: Path, query: str, kind: str, identity: str, first: str
) -> None:
    async with library(tmp_path) as client:
        found = await answered(client, "search_tools", query=query)

    assert found[kind][0][identity] == first
    assert len(found[kind]) <= MOST_FOUND


async def test_a_search_for_a_tool_brings_no_other_content(tmp_path: Path) -> None:
    async with library(tmp_path) as client:
        found = await answered(client, "search_tools", query="echo what I say")
        filtered = await answered(client, "search_tools", query="opening hours of the library", server="library")

    assert not {"prompts", "resources", "resourceTemplates", "skills"} & (found.keys() | filtered.keys())


@pytest.mark.requirement("022.search-all-kinds")
async def test_what_was_found_is_read_as_the_search_says(tmp_path: Path) -> None:
    async with library(tmp_path) as client:
        found = await answered(client, "search_tools", query="opening hours of the library")
        assert found["read_resource"] == 'Call describe_tools with {"names": ["library://rules/opening-hours"]}.'
        read = await described(client, "library://rules/opening-hours", "library://book/7", "monthly_report", "lend")

    texts = [part["text"] for each in read["resources"] for part in each["contents"]]
    assert texts == ["Monday to Friday, 9 to 17.", "Record 7."]
    assert read["prompts"][0]["messages"][0]["content"]["text"] == "List the loans of this month."
    assert [each["name"] for each in read["tools"]] == ["lend"]
    assert "unknown" not in read


@pytest.mark.requirement("022.search-all-kinds")
async def test_a_search_for_one_kind_finds_nothing_else(tmp_path: Path) -> None:
    async with library(tmp_path) as client:
        tools = await answered(client, "search_tools", query="lend a book to a reader", kind="tool")
        prompts = await answered(client, "search_tools", query="the letter to a reader", kind="prompt", limit=1)
        nothing = await answered(client, "search_tools", query="letter to a reader", kind="prompt", server="other")

    assert tools["tools"]
    assert not {"prompts", "resources", "resourceTemplates"} & tools.keys()
    assert (prompts["tools"], [each["name"] for each in prompts["prompts"]]) == ([], ["overdue_letter"])
    assert not {"resources", "resourceTemplates", "why"} & prompts.keys()
    assert "kind" in nothing["why"]


async def test_a_prompt_with_arguments_is_left_to_the_user(tmp_path: Path) -> None:
    async with library(tmp_path) as client:
        found = await answered(client, "search_tools", query="letter to a reader who is overdue")
        read = await described(client, "overdue_letter")

    assert found["prompts"][0]["arguments"] == ["reader", "tone?"]
    (prompt,) = read["prompts"]
    assert "messages" not in prompt
    assert "prompts/get" in prompt["how"]


async def test_long_texts_are_cut_and_bytes_left_out_and_the_unknown_is_said(tmp_path: Path) -> None:
    async with library(tmp_path) as client:
        read = await described(client, "library://catalogue/whole", "library://cover/image", "nowhere://at-all", "none")

    whole, cover = (each["contents"][0] for each in read["resources"])
    assert len(whole["text"]) == MOST_CHARACTERS
    assert f"{MOST_CHARACTERS + 1:,} characters" in whole["cut"]
    assert "text" not in cover
    assert cover["omitted"].startswith("binary")
    assert set(read["unknown"]) == {"nowhere://at-all", "none"}


@pytest.mark.requirement("025.items-everywhere")
async def test_skills_and_agents_of_the_configuration_are_found_and_read_within_what_their_kind_may_take(
    tmp_path: Path,
) -> None:
    skill = tmp_path / "skills" / "lending" / "SKILL.md"
    skill.parent.mkdir(parents=True)
    skill.write_text("---\nname: lending\ndescription: How loans of books are renewed\n---\nAsk for the card first.\n")
    card = tmp_path / "desk.json"
    card.write_text(
        json.dumps({"name": "Desk", "description": "Renews loans of books", "url": "https://a.example/desk"})
    )
    items = {"skills": [skill.parents[1]], "agents": [card], "most": {"prompt": 1}, "budgets": {"resource": 1}}

    async with library(tmp_path, items=items) as client:
        found = await answered(client, "search_tools", query="renew loans of books")
        agents = await answered(client, "search_tools", query="renew loans of books", kind="agent")
        prompts = await answered(client, "search_tools", query="loan of a reader of the library")
        read = await described(client, found["skills"][0]["uri"])
        elsewhere = await answered(client, "search_tools", query="renew loans of books", kind="skill", server="library")

    assert found["skills"] == [
        {"name": "lending", "description": "How loans of books are renewed", "uri": "skill://pegboard/lending"}
    ]
    assert found["read_skill"] == 'Call describe_tools with {"names": ["skill://pegboard/lending"]}.'
    assert agents["agents"] == [
        {"name": "Desk", "description": "Renews loans of books", "url": "https://a.example/desk"}
    ]
    assert agents["tools"] == []
    assert "skills" not in agents
    assert len(prompts.get("prompts", ())) <= 1
    assert "resources" not in prompts
    assert read["skills"][0]["text"] == "Ask for the card first."
    assert "skills" not in elsewhere


class Lists:
    """What a board offers, by caller: the resources of the servers that it sees."""

    on_read: Any = None

    async def listed(self, kind: str, visible: Any, *, running: bool = False) -> list[dict[str, Any]]:
        assert running
        servers = ["one", "two"] if kind == "resources" else []
        return [{"uri": f"doc://{each}/budget", "name": f"budget of {each}"} for each in servers if visible(each)]


async def test_callers_with_different_rights_share_the_indexes_that_are_there_off_the_event_loop(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    built: list[int] = []
    threads: set[int] = set()

    class Counted(DocumentIndex):
        def __init__(self, documents: Documents) -> None:
            built.append(len(documents))
            super().__init__(documents)

        def best(self, query: str) -> list[tuple[int, float]]:
            threads.add(threading.get_ident())
            return super().best(query)

    monkeypatch.setattr(module, "DocumentIndex", Counted)
    lists: Any = Lists()
    search = ContentSearch(lists, SkillLibrary(lists))
    at_work: list[str] = []

    @asynccontextmanager
    async def place() -> AsyncIterator[None]:
        at_work.append("place")
        yield

    for _ in range(3):
        for allowed in (("one",), ("two",), ("one", "two")):
            found = await search.found("budget", str, lambda name: name in allowed, place=place())  # noqa: B023
            assert [each["uri"] for each in found["resources"]] == [f"doc://{each}/budget" for each in allowed]
    await search.found("budget", str, lambda name: False, place=place())

    assert built == [1, 1, 2]
    assert threading.get_ident() not in threads
    assert len(at_work) == 9, "who has nothing to search waits for no place"
