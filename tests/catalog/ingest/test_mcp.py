from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from pegboard.catalog.ingest import tool_from_mcp, tools_from_list_result
from pegboard.errors import CatalogError


@pytest.fixture
def pages(data: Path) -> list[dict[str, Any]]:
    return list(json.loads((data / "mcp_pages.json").read_text()))


@pytest.mark.requirement("M9", "mcp.pagination")
def test_all_pages_are_read_beyond_empty_ones_and_a_repeated_tool_is_kept_once(pages: list[dict[str, Any]]) -> None:
    tools = tools_from_list_result("desk", pages)

    assert [tool.name for tool in tools] == ["create_ticket", "close_ticket", "list_queues"]
    assert tools[1].description == "Close a ticket and say why."


def test_every_field_of_a_definition_is_read(pages: list[dict[str, Any]]) -> None:
    tool = tools_from_list_result("desk", pages)[0]

    assert str(tool.id) == "desk/create_ticket"
    assert (tool.title, tool.category) == ("Create ticket", "Tickets")
    assert tool.input_schema is not None
    assert tool.input_schema["required"] == ["project", "summary"]
    assert tool.output_schema == {"type": "object", "properties": {"key": {"type": "string"}}}
    assert tool.annotations == {"readOnlyHint": False, "destructiveHint": False}


def test_the_definition_is_kept_whole_whatever_else_it_holds(pages: list[dict[str, Any]]) -> None:
    arrived = pages[0]["result"]["tools"][1]

    assert tools_from_list_result("desk", pages)[1].definition is arrived
    assert arrived["_meta"]["vendor/x"] == 7


@pytest.mark.parametrize("description", [None, 7, ["a"], {}])
def test_a_description_that_is_no_text_counts_as_none(description: object) -> None:
    assert tool_from_mcp("desk", {"name": "x", "description": description}).description == ""


@pytest.mark.parametrize(
    ("definition", "problem"),
    [
        ({}, "has the name None"),
        ({"name": ""}, "has the name ''"),
        ({"name": 3}, "has the name 3"),
        ({"name": "x", "inputSchema": []}, "Tool 'x' of server 'desk', inputSchema, is list"),
        ({"name": "x", "outputSchema": "y"}, "outputSchema, is str"),
        ({"name": "x", "annotations": 1}, "annotations, is int"),
        ({"name": "x", "_meta": []}, "_meta, is list"),
    ],
)
def test_a_broken_definition_names_the_server_the_tool_and_the_field(definition: dict[str, Any], problem: str) -> None:
    with pytest.raises(CatalogError) as caught:
        tool_from_mcp("desk", definition)

    assert problem in str(caught.value)
    assert "'desk'" in str(caught.value)


@pytest.mark.parametrize("page", [None, [], {"result": []}, {"tools": {}}, {"tools": ["x"]}, {"error": {"code": 1}}])
def test_a_broken_page_names_the_server(page: object) -> None:
    with pytest.raises(CatalogError, match="'desk'"):
        tools_from_list_result("desk", [page])


@pytest.mark.parametrize(
    ("meta", "category"),
    [
        ({"category": "Issues"}, "Issues"),
        ({"example.com/category": "Issues"}, "Issues"),
        ({"a.example/category": "Other", "pegboard/category": "Issues"}, "Issues"),
        ({"b.example/category": "Other", "a.example/category": "Issues"}, "Issues"),
        ({"category": 7, "a.example/category": "Issues"}, "Issues"),
        ({"category": "  \n ", "a.example/category": " Issues \n and more "}, "Issues and more"),
        ({"category": "x" * 500}, "x" * 80),
        ({"subcategory": "Issues"}, None),
        ({}, None),
        (None, None),
    ],
)
def test_a_servers_own_category_is_read_from_meta_whichever_vendor_it_names(
    meta: dict[str, Any] | None, category: str | None
) -> None:
    assert tool_from_mcp("a", {"name": "b", "_meta": meta}).category == category
