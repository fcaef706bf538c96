from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from pegboard import Catalog, ToolId
from pegboard.errors import CatalogError, ConfigError
from pegboard.evaluation.datasets import LEAST, Query, evidence, read_observed, read_queries

TIDES = ToolId("weather", "get_tides")
GONE = ToolId("weather", "get_moon")


def lines(path: Path, *rows: dict[str, Any]) -> Path:
    text = "".join(json.dumps(row) + "\n" for row in rows)
    path.write_bytes(gzip.compress(text.encode()) if path.suffix == ".gz" else text.encode())
    return path


@pytest.mark.parametrize("name", ["queries.jsonl", "queries.jsonl.gz"])
def test_labelled_queries_are_read_plain_and_compressed(tmp_path: Path, name: str) -> None:
    path = lines(tmp_path / name, {"id": "1", "query": "high water?", "relevant": [list(TIDES)]})

    assert read_queries(path) == (Query(id="1", text="high water?", relevant=(TIDES,)),)


@pytest.mark.parametrize("name", ["observed.jsonl", "observed.jsonl.gz"])
def test_calls_that_did_not_fail_are_the_labels(tmp_path: Path, name: str) -> None:
    called = [list(TIDES), ["weather", "get_forecast"], list(TIDES)]
    row = {"query": "high water?", "called": called, "failed": [["weather", "get_forecast"]]}
    found = read_observed(lines(tmp_path / name, row, {"query": "hello", "called": []}))

    assert found == (Query(id="1", text="high water?", relevant=(TIDES,)), Query(id="2", text="hello"))


@pytest.mark.parametrize("row", [{"query": "no calls"}, {"called": []}, {"query": "x", "called": ["weather"]}, ["x"]])
def test_a_line_that_is_no_observation_is_named(tmp_path: Path, row: Any) -> None:
    with pytest.raises(CatalogError, match=r"observed\.jsonl, line 2, is not an observation"):
        read_observed(lines(tmp_path / "observed.jsonl", {"query": "x", "called": []}, row))


def test_a_file_that_is_not_there_is_an_error_with_a_remedy(tmp_path: Path) -> None:
    with pytest.raises(CatalogError, match="--observed"):
        read_observed(tmp_path / "gone.jsonl")


def test_labels_that_are_not_on_the_board_are_counted_and_left_out(town: Catalog) -> None:
    good = [Query(id=str(number), text="tides", relevant=(TIDES, GONE)) for number in range(LEAST)]
    grouped = Query(id="group", text="tides", any_of=((GONE, TIDES), (GONE,)))
    found = evidence([*good, grouped, Query(id="gone", text="moon", relevant=(GONE,))], town)

    assert {query.relevant for query in found.queries[:LEAST]} == {(TIDES,)}
    assert found.queries[LEAST].any_of == ((TIDES,),)
    assert (len(found.queries), found.left_out, found.unknown) == (LEAST + 1, 1, LEAST + 3)


def test_too_few_queries_are_refused_with_what_to_do(town: Catalog) -> None:
    few = [Query(id=str(number), text="tides", relevant=(TIDES,)) for number in range(LEAST - 1)]
    unusable = [Query(id="silent", text="  ", relevant=(TIDES,)), Query(id="gone", text="moon", relevant=(GONE,))]

    with pytest.raises(ConfigError, match=r"19 of 21 queries .* 1 labels name tools .* Label more"):
        evidence([*few, *unusable], town)


def test_a_damaged_file_of_observations_is_named(tmp_path: Path) -> None:
    packed = bytearray(gzip.compress(b'{"query": "a", "called": [["s", "n"]]}\n' * 50))
    packed[15:20] = b"\xff" * 5
    (path := tmp_path / "observed.jsonl.gz").write_bytes(packed)

    with pytest.raises(CatalogError, match="Cannot read"):
        read_observed(path)
