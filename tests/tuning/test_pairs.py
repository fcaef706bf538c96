from __future__ import annotations

import gzip
import json
import random
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from tuning.pairs import Data, Pair, batches, document, first_sentence, is_held_out, read

WRITTEN = Path(__file__).parents[2] / "scripts" / "tuning" / "written"


def pair(number: int, group: str) -> Pair:
    key = ("catalog", group, f"tool_{number}")
    return Pair(query=f"request {number}", tool=key, relevant=frozenset([key]), group=group)


def folder(path: Path, name: str, tools: list[dict[str, Any]], queries: list[dict[str, Any]]) -> None:
    (path / name).mkdir()
    for file, rows in (("catalog", tools), ("queries", queries)):
        with gzip.open(path / name / f"{file}.jsonl.gz", "wt", encoding="utf-8") as lines:
            lines.writelines(json.dumps(row) + "\n" for row in rows)


def test_a_batch_has_several_pairs_of_one_server_side_by_side() -> None:
    pairs = [pair(number, f"server {number % 10}") for number in range(200)]

    found = list(batches(pairs, 20, random.Random(1)))

    assert Counter(id(each) for batch in found for each in batch).most_common(1)[0][1] == 1
    assert len(found) == 10
    assert all(Counter(each.group for each in batch).most_common(1)[0][1] >= 4 for batch in found)


def test_what_a_query_already_says_is_not_in_the_text_that_answers_it() -> None:
    tool = {"server": "s", "name": "openIssue", "description": "Opens an issue. Needs a token.", "input_schema": None}
    says = first_sentence(tool["description"])

    texts = {document(tool, random.Random(seed), without=says) for seed in range(20)}

    assert all("Opens an issue" not in text and "Needs a token" in text for text in texts)
    assert any(text.startswith("s open Issue") for text in texts)


def test_queries_that_are_kept_for_fitting_are_about_three_in_ten() -> None:
    assert sum(is_held_out(f"query {number}") for number in range(1000)) == pytest.approx(300, abs=60)


def test_a_query_like_one_that_is_scored_gives_no_pair(tmp_path: Path) -> None:
    tools = [{"server": "s", "name": "book", "description": "Book a room in a hotel.", "input_schema": None}]
    asked = "please find me a quiet room in a small hotel near the old harbour of Bergen"
    relevant = [["s", "book"]]
    from tuning.pairs import CATALOGS, LABELLED, SCORED, SCORED_CATALOGS

    for name in {*SCORED, *SCORED_CATALOGS, *CATALOGS}:
        folder(tmp_path, name, [], [{"id": "1", "query": asked, "relevant": []}] if name in SCORED else [])
    for name in LABELLED:
        queries = [
            {"id": str(number), "query": text, "relevant": relevant}
            for number, text in enumerate([asked, "where can I sleep tonight in Oslo"] * 20)
        ]
        folder(tmp_path, name, tools, queries)

    pairs = Data.read(tmp_path).pairs(tmp_path, [])

    assert {each.query for each in pairs} == {"where can I sleep tonight in Oslo"}


def test_what_was_written_to_tune_on_and_what_to_fit_on_share_no_server() -> None:
    servers = {
        part: {
            (tool[0], tool[1]) for path in WRITTEN.glob(f"{part}-*") for line in read(path) for tool in line["tools"]
        }
        for part in ("tune", "fit")
    }

    assert len(servers["tune"]) > 500
    assert not servers["tune"] & servers["fit"]
