from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tuning.pairs import CATALOGS, is_held_out
from tuning.validation import LABELLED, Board, boards, recalls


def set_of(path: Path, name: str, tools: list[dict[str, Any]], queries: list[dict[str, Any]]) -> None:
    (path / name).mkdir()
    for file, rows in (("catalog", tools), ("queries", queries)):
        with gzip.open(path / name / f"{file}.jsonl.gz", "wt", encoding="utf-8") as lines:
            lines.writelines(json.dumps(row) + "\n" for row in rows)


def test_boards_ask_nothing_that_was_tuned_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    written = tmp_path / "written"
    written.mkdir()
    with gzip.open(written / "fit-00.jsonl.gz", "wt") as lines:
        lines.write(json.dumps({"query": "wake me at six", "tools": [[CATALOGS[0], "clock", "set"]]}) + "\n")
    monkeypatch.setattr("tuning.validation.WRITTEN", written)
    tool = {"server": "clock", "name": "set", "description": "Sets an alarm.", "input_schema": None}
    queries = [{"id": str(each), "query": f"query {each}", "relevant": [["clock", "set"]]} for each in range(60)]
    for name in LABELLED:
        set_of(tmp_path, name, [tool], queries)
    for name in CATALOGS:
        set_of(tmp_path, name, [tool, tool | {"server": "elsewhere"}], [])

    found = {board.name: board for board in boards(tmp_path)}

    assert all(is_held_out(text.split()[1]) for text in found["stabletoolbench"].queries)
    assert 0 < len(found["stabletoolbench"].queries) < 60
    assert len(found["nestful"].queries) == 60
    assert found["written"].queries == ["wake me at six"]
    assert found["written"].tools == ["set: Sets an alarm."], "of the servers that are asked for, each tool once"


def test_recall_counts_the_nearest_clause_as_much_as_the_whole_request() -> None:
    axes = np.eye(8)
    tools = [f"tool {place}" for place in range(7)]
    known = {text: (axes[place], []) for place, text in enumerate(tools)}
    whole = (axes[0] + axes[1] + axes[2] + axes[3] + axes[4] + 0.5 * axes[5]) / 3
    board = Board(
        name="one",
        tools=tools,
        queries=["whole", "clauses"],
        wanted=[frozenset([0, 5]), frozenset([0, 5])],
    )

    def encode(texts: list[str]) -> list[tuple[np.ndarray, list[np.ndarray]]]:
        return [(known | {"whole": (whole, []), "clauses": (whole, [axes[5]])})[text] for text in texts]

    ((_, recall),) = recalls([board], encode)

    assert recall == (0.5 + 1.0) / 2
