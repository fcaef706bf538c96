from __future__ import annotations

import gzip
import json
import shutil
from pathlib import Path

import pytest

from pegboard.errors import CatalogError
from pegboard.evaluation.datasets import CATALOG, QUERIES, read_queries, read_set
from pegboard.model import ToolId


@pytest.fixture
def folder(data: Path, tmp_path: Path) -> Path:
    """A set with a good catalog; its queries are up to the test."""
    shutil.copy(data / "cli" / "small_set" / CATALOG, tmp_path / CATALOG)
    return tmp_path


def write_queries(folder: Path, *lines: object) -> None:
    with gzip.open(folder / QUERIES, "wt", encoding="utf-8") as file:
        file.writelines(f"{line if isinstance(line, str) else json.dumps(line)}\n" for line in lines)


def test_a_set_is_its_catalog_and_its_queries(folder: Path) -> None:
    write_queries(folder, {"id": "q", "query": "do it", "relevant": [["code", "list_issues"]]}, "")
    found = read_set(folder)

    assert len(found.catalog) == 12
    assert found.queries[0].relevant == (ToolId("code", "list_issues"),)
    assert found.queries[0].any_of == ()


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("{", "line 1, is not a query"),
        ({"id": "q"}, "KeyError"),
        ({"id": "q", "query": "x", "relevant": [["a"]]}, "is not a query"),
        ({"id": "q", "query": "x", "relevant": [["code", "fly"]]}, "names 'code/fly', which is not in the catalog"),
        ({"id": "q", "query": "x", "any_of": [[["code", "fly"]]]}, "names 'code/fly', which is not in the catalog"),
    ],
)
def test_a_query_that_cannot_be_used_is_named(folder: Path, line: object, said: str) -> None:
    write_queries(folder, line)

    with pytest.raises(CatalogError, match=said) as caught:
        read_set(folder)
    assert caught.value.remedy


def test_a_label_with_another_server_is_told_which_tool_has_that_name(folder: Path) -> None:
    write_queries(folder, {"id": "q", "query": "x", "relevant": [["local", "list_issues"]]})

    with pytest.raises(CatalogError) as caught:
        read_set(folder)
    assert caught.value.remedy == "Did you mean 'code/list_issues'?"


def test_queries_may_be_plain_text(folder: Path) -> None:
    (folder / "queries.jsonl").write_text(json.dumps({"id": "q", "query": "do\u2028it"}, ensure_ascii=False), "utf-8")

    assert read_queries(folder / "queries.jsonl")[0].text == "do\u2028it"


def test_a_file_that_is_missing_or_no_gzip_is_named(folder: Path) -> None:
    with pytest.raises(CatalogError, match=QUERIES):
        read_set(folder)
    (folder / QUERIES).write_bytes(b"\x1f\x8bcut")
    with pytest.raises(CatalogError, match=QUERIES):
        read_set(folder)
    (folder / QUERIES).write_text("plain")
    with pytest.raises(CatalogError, match=QUERIES):
        read_set(folder)
