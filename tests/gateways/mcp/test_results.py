"""Long lists in pages, and errors of our own on the wire."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from mcp import Client, MCPError

from pegboard import Settings
from pegboard.compose import default_parts
from pegboard.errors import PegboardError
from pegboard.gateways.mcp import open_gateway
from pegboard.gateways.mcp.transport import results
from pegboard.gateways.mcp.transport.gateway_server import wire
from pegboard.gateways.mcp.transport.results import page
from pegboard.stores import MemoryEmbeddings
from pegboard.testing import FakeEncoder

MEBIBYTE = 1 << 20


def definition(number: int, size: int, letter: str = "x") -> dict[str, Any]:
    return {"name": f"tool{number}", "description": letter * size, "inputSchema": {"type": "object"}}


def every_page(definitions: list[dict[str, Any]]) -> list[list[dict[str, Any]]]:
    found, cursor = [], None
    while True:
        each = page(definitions, cursor)
        found.append(each["tools"])
        cursor = each.get("nextCursor")
        if cursor is None:
            return found


def test_a_short_list_is_one_page_without_a_cursor() -> None:
    assert page([definition(1, 10)], None) == {"tools": [definition(1, 10)]}
    assert page([], None) == {"tools": []}


@given(sizes=st.lists(st.sampled_from([0, 10, 150_000, 399_000, 900_000]), max_size=12))
def test_the_pages_together_are_the_list_whatever_the_sizes(sizes: list[int]) -> None:
    definitions = [definition(number, size) for number, size in enumerate(sizes)]

    found = every_page(definitions)

    assert [each for one in found for each in one] == definitions
    assert all(found) or not definitions


@pytest.mark.parametrize("letter", ["x", "é", "世", "🔨", '"', "\n"])
def test_no_page_of_ordinary_tools_is_more_than_a_client_reads(letter: str) -> None:
    found = every_page([definition(number, 1_000, letter) for number in range(1_500)])

    assert len(found) > 1
    assert max(len(json.dumps(one, ensure_ascii=False).encode()) for one in found) < MEBIBYTE


def test_a_cursor_of_a_list_that_changed_is_refused() -> None:
    before = [definition(number, 300_000) for number in range(3)]
    cursor = page(before, None)["nextCursor"]

    with pytest.raises(MCPError, match="start again"):
        page([*before, definition(4, 1)], cursor)
    assert page(before, cursor)["tools"][0]["name"] == "tool1"


@pytest.mark.parametrize(
    "cursor", ["", ".", "7", "nonsense", "abc.1", "{mark}", "{mark}.", "{mark}.-1", "{mark}.x", "{mark}." + "9" * 5_000]
)
def test_a_cursor_that_is_none_of_ours_is_refused(cursor: str) -> None:
    definitions = [definition(number, 300_000) for number in range(3)]

    with pytest.raises(MCPError):
        page(definitions, cursor.format(mark=results._mark(definitions)))


@pytest.mark.parametrize("place", ["3", "99"])
def test_a_cursor_beyond_the_end_is_an_empty_page(place: str) -> None:
    definitions = [definition(number, 300_000) for number in range(3)]
    cursor = f"{results._mark(definitions)}.{place}"

    assert page(definitions, cursor) == {"tools": []}


@pytest.mark.parametrize("mode", ["auto", "legacy"])
async def test_a_client_is_told_what_was_wrong_where_a_resource_or_a_prompt_cannot_be_had(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, mode: str
) -> None:
    closed = PegboardError("The harbour is closed.", remedy="Ask tomorrow.")

    async def failing(*_asked: Any) -> Any:
        raise closed

    settings = Settings(cache_dir=tmp_path, state_dir=tmp_path)
    parts = default_parts(settings, encoder=FakeEncoder(), embeddings=MemoryEmbeddings())
    async with open_gateway(settings, parts) as gateway, Client(wire(gateway), mode=mode, cache=None) as client:
        monkeypatch.setattr(gateway.resources, "read", failing)
        monkeypatch.setattr(gateway.resources, "prompt", failing)
        for asked in (client.read_resource("doc://a"), client.get_prompt("a")):
            with pytest.raises(MCPError) as refused:
                await asked
            assert refused.value.error.code == -32603
            assert refused.value.error.message == "The harbour is closed. Ask tomorrow."
            assert refused.value.error.data == closed.payload()
    assert not [each for each in caplog.records if each.exc_info]
    await parts.close()
