from __future__ import annotations

import json
from pathlib import Path

import pytest

from pegboard.catalog.ingest import tools_from_gemini
from pegboard.errors import CatalogError


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
