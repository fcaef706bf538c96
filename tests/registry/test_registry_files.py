from __future__ import annotations

import json
from pathlib import Path

import pytest

from pegboard.errors import CatalogError, ConfigError
from pegboard.registry.registry_files import read_servers, registry_files
from registry_entries import REAL, entry


def test_a_list_answer_an_array_lines_and_a_single_server_are_read(tmp_path: Path) -> None:
    texts = {
        "answer.json": json.dumps({"servers": [entry()], "metadata": {}}),
        "array.json": json.dumps([entry(), entry()]),
        "lines.jsonl": f"{json.dumps(entry())}\n\n{json.dumps(entry()['server'])}\n",
        "server.json": "\ufeff" + json.dumps(entry()["server"]),
    }
    for name, text in texts.items():
        (tmp_path / name).write_text(text)

    files = registry_files(str(tmp_path))
    assert [len(list(read_servers(file))) for file in files] == [1, 2, 2, 1]


def test_lines_end_where_json_lines_end_not_at_other_separators_in_a_text(tmp_path: Path) -> None:
    path = tmp_path / "lines.jsonl"
    lines = [json.dumps(entry(description="one\u2028two\x85three"), ensure_ascii=False), json.dumps(entry())]
    path.write_bytes("\r\n".join(lines).encode())

    assert [each["server"]["description"][:3] for each in read_servers(path)] == ["one", "Whe"]


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (REAL.read_bytes()[:5_000], "is no JSON: .* at line"),
        (b"", "is no JSON"),
        (b"\xff\xfe{}", "is not UTF-8"),
        (b"[" * 200_000, "nested too deeply|is no JSON"),
        (b'{"servers": [' + b"1" * 5_000 + b"]}", "too many digits"),
        (b'{"servers": {}}', "no list of servers"),
        (b'"text"', "no list of servers"),
    ],
)
def test_a_broken_file_is_an_error_that_says_where(tmp_path: Path, content: bytes, said: str) -> None:
    (tmp_path / "cut.json").write_bytes(content)

    with pytest.raises(CatalogError, match=said) as error:
        list(read_servers(tmp_path / "cut.json"))
    assert "cut.json" in str(error.value)


def test_a_source_without_files_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="no file that ends in"):
        registry_files(str(tmp_path))
    with pytest.raises(ConfigError, match="neither a file nor a folder"):
        registry_files(str(tmp_path / "nothing"))
