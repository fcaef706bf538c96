from __future__ import annotations

import json
from pathlib import Path

import pytest

from pegboard.catalog.ingest import tools_from_openai
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
def test_a_broken_entry_is_an_error_of_ours(entry: object) -> None:
    with pytest.raises(CatalogError):
        tools_from_openai("app", [entry])
