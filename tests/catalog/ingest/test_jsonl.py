from __future__ import annotations

from pathlib import Path

import pytest

from pegboard.catalog.ingest import servers_from_jsonl
from pegboard.errors import CatalogError


def test_servers_come_in_order_of_appearance_with_their_tools_in_order_of_the_lines(data: Path) -> None:
    groups = servers_from_jsonl((data / "catalog.jsonl").read_text().splitlines(), "catalog.jsonl")

    assert [server.name for server, _ in groups] == ["library", "weather", "workshop", "tickets"]
    assert [tool.name for tool in groups[2][1]] == ["book_repair", "find_part"]
    assert groups[0][0].description == "Loans and reservations of the town library"


def test_a_category_and_either_spelling_of_the_schema_are_read(data: Path) -> None:
    workshop = servers_from_jsonl((data / "catalog.jsonl").read_text().splitlines(), "catalog.jsonl")[2][1]

    assert [tool.category for tool in workshop] == ["Repairs", "Stock"]
    assert workshop[0].input_schema == {"type": "object", "properties": {"day": {"type": "string"}}}
    assert workshop[0].definition["inputSchema"] == workshop[0].input_schema


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        ('{"server": "a"', "is not JSON"),
        ("7", "is int, not a JSON object"),
        ('{"server": "a"}', "has the name None"),
        ('{"name": "a"}', "has the server None"),
        ('{"server": "", "name": "a"}', "has the server ''"),
        ('{"server": "a", "name": "b", "input_schema": 5}', "input_schema, is int"),
    ],
)
def test_a_broken_line_is_named_with_its_number(line: str, problem: str) -> None:
    with pytest.raises(CatalogError) as caught:
        servers_from_jsonl(['{"server": "a", "name": "b"}', "", line], "tools.jsonl")

    assert "tools.jsonl, line 3," in str(caught.value)
    assert problem in str(caught.value)
