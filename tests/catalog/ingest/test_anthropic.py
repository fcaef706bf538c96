from __future__ import annotations

import json
from pathlib import Path

import pytest

from pegboard.catalog.ingest import tools_from_anthropic
from pegboard.errors import CatalogError


@pytest.mark.requirement("P15")
def test_client_tools_are_read_and_server_tools_are_left_out(data: Path) -> None:
    entries = json.loads((data / "anthropic.json").read_text())["tools"]

    tools = tools_from_anthropic("app", entries)

    assert [tool.name for tool in tools] == ["book_workshop", "find_part"]
    assert tools[0].input_schema == entries[0]["input_schema"]
    assert tools[0].definition is entries[0]


@pytest.mark.parametrize("entry", [None, {}, {"name": "x", "input_schema": "y"}])
def test_a_broken_entry_is_an_error_of_ours(entry: object) -> None:
    with pytest.raises(CatalogError):
        tools_from_anthropic("app", [entry])
