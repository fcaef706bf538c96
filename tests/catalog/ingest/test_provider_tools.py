"""Tools as requests to OpenAI, Anthropic and Gemini carry them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from pegboard.catalog.ingest import tools_from_anthropic, tools_from_gemini, tools_from_openai
from pegboard.errors import CatalogError


@pytest.mark.requirement("P22", "P15")
def test_nested_functions_are_read_and_hosted_tools_are_left_out(data: Path) -> None:
    entries = json.loads((data / "openai_chat.json").read_text())["tools"]

    tools = tools_from_openai("app", entries)

    assert [tool.name for tool in tools] == ["renew_loan", "list_loans"]
    assert tools[0].input_schema == entries[0]["function"]["parameters"]
    assert [tool.definition for tool in tools] == entries[:2]
    assert (tools[1].description, tools[1].input_schema) == ("", None)


@pytest.mark.requirement("P22", "P15")
def test_flat_functions_are_read_and_hosted_tools_are_left_out(data: Path) -> None:
    entries = json.loads((data / "openai_responses.json").read_text())

    tools = tools_from_openai("app", entries)

    assert [tool.name for tool in tools] == ["renew_loan", "reserve_book"]
    assert [tool.definition for tool in tools] == [entries[0], entries[4]]


@pytest.mark.requirement("P22")
@pytest.mark.parametrize("entry", [{"type": "custom", "custom": {"name": "x"}}, {"type": "custom", "name": "x"}])
def test_custom_tools_are_read_in_either_shape(entry: dict[str, object]) -> None:
    assert [tool.name for tool in tools_from_openai("app", [entry])] == ["x"]


@pytest.mark.parametrize("entry", [7, {"type": "function"}, {"function": 1}, {"name": "x", "parameters": []}])
def test_a_broken_openai_entry_is_an_error_of_ours(entry: object) -> None:
    with pytest.raises(CatalogError):
        tools_from_openai("app", [entry])


@pytest.mark.requirement("P15")
def test_client_tools_are_read_and_server_tools_are_left_out(data: Path) -> None:
    entries = json.loads((data / "anthropic.json").read_text())["tools"]

    tools = tools_from_anthropic("app", entries)

    assert [tool.name for tool in tools] == ["book_workshop", "find_part"]
    assert tools[0].input_schema == entries[0]["input_schema"]
    assert tools[0].definition is entries[0]


@pytest.mark.parametrize("entry", [None, {}, {"name": "x", "input_schema": "y"}])
def test_a_broken_anthropic_entry_is_an_error_of_ours(entry: object) -> None:
    with pytest.raises(CatalogError):
        tools_from_anthropic("app", [entry])


@pytest.mark.requirement("P15")
def test_declarations_of_every_group_are_read_and_hosted_tools_are_left_out(data: Path) -> None:
    tools = tools_from_gemini("garden", json.loads((data / "gemini_camel.json").read_text())["tools"])

    assert [tool.name for tool in tools] == ["water_plants", "read_moisture", "greenhouse_door"]
    assert tools[0].input_schema is not None
    assert tools[0].input_schema["type"] == "OBJECT"
    assert tools[1].input_schema is None
    assert tools[2].input_schema == {"type": "object"}


def test_the_other_spelling_is_read_too(data: Path) -> None:
    tools = tools_from_gemini("garden", json.loads((data / "gemini_snake.json").read_text()))

    assert [tool.name for tool in tools] == ["water_plants"]


@pytest.mark.parametrize("entry", ["x", {"functionDeclarations": {"name": "x"}}, {"function_declarations": [{}]}])
def test_a_broken_group_is_an_error_of_ours(entry: object) -> None:
    with pytest.raises(CatalogError):
        tools_from_gemini("garden", [entry])
