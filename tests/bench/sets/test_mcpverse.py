"""MCPVerse's questions over tools that come from five kinds of places."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from git_mirrors import rows
from pegboard_bench.sets import catalog_toolsdk, livemcp_catalog, mcpverse, mcpverse_servers
from pegboard_bench.sets.recipe import LISTING

Built = Callable[..., Path]

SQLITE = """
from mcp import types
TOOLS = [
    types.Tool(name="read_query", description="Reads " "rows", inputSchema={"type": "object"}),
    types.Tool(name=NAME),
]
"""
PAPERS = '''
@mcp.tool()
async def search(query: str, year: Optional[str] = None, top: int = 10, tags: List[str] = ()) -> list:
    """Search papers.

    Args:
        query: words
    """


def helper(query: str): ...
'''
QUESTIONS = """question_id,question,MCP,tool,complexity
Q1, Which time is it? ,time,get_time,L1
Q2,Twice,time+sqlite,time/get_time*2 + read_query,L2
Q3,Wrong server,amap-maps,read_query,L1
Q4,Nobody has it,time,sing,L1
Q5,Code,code,code * N,L3
"""

pytestmark = pytest.mark.requirement("bench.public-sets")


@pytest.fixture
def files() -> dict[str, dict[str, Any]]:
    own = {f"{mcpverse_servers.OWN}/{path}": "" for path, _ in mcpverse_servers.OWN_SOURCES.values()}
    own[f"{mcpverse_servers.OWN}/{mcpverse_servers.OWN_SOURCES['sqlite'][0]}"] = SQLITE
    own[f"{mcpverse_servers.OWN}/{mcpverse_servers.OWN_SOURCES['paper_search_server'][0]}"] = PAPERS
    schema = {"properties": {"b": {"type": "string"}, "aa": {}}, "type": "object"}
    listed = {"tools": [{"name": "weather", "description": "Rain", "input_schema": schema}]}
    crawled = {"metadata": {"server_info_crawled": {"overview": "Korea"}, "remote_server_response": listed}}
    time = {"tools": [{"name": "get_time", "description": "Now", "inputSchema": {"type": "object"}}]}
    live = [{"description": "Clock", "tools": {"time": time, "unused": time}}]
    index = {"anilist-mcp": {"path": "a.json", "tools": {"anime": {"name": "anime", "description": "Films"}}}}
    answer = {"tools": [{"name": "look_up", "description": "Looks", "inputSchema": {"type": "object"}}]}
    return {
        "questions": {mcpverse.QUESTIONS: QUESTIONS, **own},
        "mcpverse": {},
        livemcp_catalog.SOURCE: {livemcp_catalog.TOOLS: live},
        catalog_toolsdk.SOURCE: {catalog_toolsdk.INDEX: index, "packages/a.json": {"description": "Anime"}},
        "Toucan": dict.fromkeys(mcpverse_servers.CRAWLED.values(), crawled),
        **dict.fromkeys(mcpverse_servers.STARTED, answer),
    }


def test_tools_come_from_every_kind_of_place_by_server(built: Built, files: dict[str, dict[str, Any]]) -> None:
    tools = rows(built(mcpverse.RECIPE, files) / "catalog.jsonl.gz")
    servers = [tool["server"] for tool in tools]

    assert servers == sorted(servers)
    assert {"time", "anilist", "sqlite", "paper_search_server", "mcp-visit-korea", "git", "variflight"} <= set(servers)
    assert "unused" not in servers


def test_sources_of_servers_are_parsed_and_not_run(built: Built, files: dict[str, dict[str, Any]]) -> None:
    tools = {tool["server"]: tool for tool in rows(built(mcpverse.RECIPE, files) / "catalog.jsonl.gz")}

    assert tools["sqlite"]["description"] == "Reads rows"
    assert tools["paper_search_server"]["description"] == "Search papers.\n\nArgs:\n    query: words"
    assert tools["paper_search_server"]["input_schema"] == {
        "type": "object",
        "properties": {
            "query": {"type": "string"},
            "year": {"anyOf": [{"type": "string"}, {"type": "null"}], "default": None},
            "top": {"type": "integer", "default": 10},
            "tags": {"type": "string", "default": []},
        },
        "required": ["query"],
    }


def test_keys_of_crawled_schemas_are_by_length(built: Built, files: dict[str, dict[str, Any]]) -> None:
    tools = {tool["server"]: tool for tool in rows(built(mcpverse.RECIPE, files) / "catalog.jsonl.gz")}

    assert list(tools["mcp-visit-korea"]["input_schema"]) == ["type", "properties"]
    assert list(tools["mcp-visit-korea"]["input_schema"]["properties"]) == ["b", "aa"]


def test_a_question_is_kept_if_all_its_tools_are_there(built: Built, files: dict[str, dict[str, Any]]) -> None:
    folder = built(mcpverse.RECIPE, files)
    page = (folder / "SOURCE.md").read_text()

    assert [(row["id"], row["query"], row["relevant"]) for row in rows(folder / "queries.jsonl.gz")] == [
        ("Q1", "Which time is it?", [["time", "get_time"]]),
        ("Q2", "Twice", [["time", "get_time"], ["sqlite", "read_query"]]),
        ("Q3", "Wrong server", [["sqlite", "read_query"]]),
    ]
    assert "1 tasks for a code interpreter" in page
    assert "1 with the label 'time:sing': no tool has the name." in page
    assert f"version 0.0.8, started here, licence MIT\n    - {LISTING} `" in page
