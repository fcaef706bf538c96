from __future__ import annotations

import gzip
import json
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pegboard.catalog.ingest import parse_catalog, read_catalog
from pegboard.errors import CatalogError


@pytest.mark.parametrize(
    ("file", "ids"),
    [
        ("mcp_tools_list.json", ["mcp_tools_list/get_forecast", "mcp_tools_list/get_tides"]),
        ("openai_chat.json", ["openai_chat/renew_loan", "openai_chat/list_loans"]),
        ("openai_responses.json", ["openai_responses/renew_loan", "openai_responses/reserve_book"]),
        ("anthropic.json", ["anthropic/book_workshop", "anthropic/find_part"]),
        (
            "gemini_camel.json",
            ["gemini_camel/water_plants", "gemini_camel/read_moisture", "gemini_camel/greenhouse_door"],
        ),
        ("gemini_snake.json", ["gemini_snake/water_plants"]),
    ],
)
def test_the_format_is_read_off_the_content(data: Path, file: str, ids: list[str]) -> None:
    assert [str(tool.id) for tool in read_catalog(data / file).tools] == ids


def test_json_lines_name_their_servers_themselves(data: Path) -> None:
    catalog = read_catalog(data / "catalog.jsonl")

    assert list(catalog.servers) == ["library", "weather", "workshop", "tickets"]
    assert len(catalog) == 8


def test_a_compressed_file_is_read_whatever_its_name(data: Path, tmp_path: Path) -> None:
    packed = tmp_path / "town.data"
    packed.write_bytes(gzip.compress((data / "catalog.jsonl").read_bytes()))

    assert read_catalog(packed).fingerprint == read_catalog(data / "catalog.jsonl").fingerprint


def test_one_line_of_json_lines_is_a_catalog_of_one_tool() -> None:
    catalog = parse_catalog('{"server": "post", "name": "send"}\n', source="f", server="f")

    assert [str(tool.id) for tool in catalog.tools] == ["post/send"]


def test_an_array_of_rows_names_its_servers_as_lines_do() -> None:
    rows = [{"server": server, "server_description": f"{server}'s", "name": "send"} for server in ("post", "mail")]

    catalog = parse_catalog(json.dumps(rows), source="f", server="f")

    assert [str(tool.id) for tool in catalog.tools] == ["post/send", "mail/send"]
    assert catalog.servers["mail"].description == "mail's"


def test_an_error_in_an_array_of_rows_names_the_entry() -> None:
    with pytest.raises(CatalogError, match=r"f, entry 2, has the server 7"):
        parse_catalog('[{"server": "post", "name": "send"}, {"server": 7, "name": "send"}]', source="f", server="f")


def test_line_separators_inside_a_text_end_no_line() -> None:
    """U+2028 and its like are ordinary characters in JSON."""
    lines = [
        json.dumps({"server": "post", "name": name, "description": "a\u2028b\u0085c\u2029d"}, ensure_ascii=False)
        for name in ("send", "receive")
    ]

    catalog = parse_catalog("\r\n".join(lines), source="f", server="f")

    assert [tool.description for tool in catalog.tools] == ["a\u2028b\u0085c\u2029d"] * 2


def test_a_byte_order_mark_is_skipped(tmp_path: Path) -> None:
    path = tmp_path / "tools.json"
    path.write_bytes(b'\xef\xbb\xbf[{"name": "send", "inputSchema": {}}]')

    assert [str(tool.id) for tool in read_catalog(path).tools] == ["tools/send"]


@pytest.mark.parametrize("text", ["", "[]", "{}", "7", '"x"', '{"tools": 3}', '{"tools": []}', "[7]", "null", "x\ny"])
def test_what_holds_no_tools_is_an_error_of_ours(text: str) -> None:
    with pytest.raises(CatalogError) as caught:
        parse_catalog(text, source="tools.json", server="tools")

    assert caught.value.remedy


@given(text=st.text(max_size=60) | st.text('[]{}":,1ntools', max_size=60))
def test_no_text_breaks_the_reader(text: str) -> None:
    with suppress(CatalogError):
        assert len(parse_catalog(text, source="f", server="f")) > 0


@pytest.mark.parametrize(
    "content",
    [
        b"\xff\xfe\x00binary",
        gzip.compress(b'[{"name": "send", "inputSchema": {}}]' * 40)[:30],
        gzip.compress(b"x" * 5000, mtime=0)[:12] + b"\xff" * 20,
    ],
    ids=["not text", "cut off", "damaged"],
)
def test_a_file_that_cannot_be_read_as_text_is_named(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "broken.json"
    path.write_bytes(content)

    with pytest.raises(CatalogError, match=r"broken\.json"):
        read_catalog(path)


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(CatalogError, match=r"Cannot read .*nowhere\.json"):
        read_catalog(tmp_path / "nowhere.json")
