from __future__ import annotations

import json
import math
import platform
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from pegboard_bench import results


def write(folder: Path, **changes: Any) -> dict[str, Any]:
    given = {"command": "make bench-x", "seed": 7, "figures": {"b/x": 1, "a@5/y": 0.5}, "tables": {"t": [1]}}
    path = results.write("x", folder=folder, **(given | changes))
    return dict(json.loads(path.read_text("utf-8")))


def test_a_result_says_everything_that_is_needed_to_get_it_again(tmp_path: Path) -> None:
    found = write(tmp_path / "new")

    assert list(found) == ["name", "command", "commit", "date", "machine", "versions", "seed", "figures", "tables"]
    assert (found["name"], found["command"], found["seed"]) == ("x", "make bench-x", 7)
    assert datetime.fromisoformat(found["date"]).utcoffset() is not None
    assert found["versions"]["numpy"]
    assert found["machine"]["cores"]
    assert list(found["figures"]) == ["a@5/y", "b/x"]


def test_no_host_name_is_published(tmp_path: Path) -> None:
    write(tmp_path)

    assert platform.node() not in (tmp_path / "x.json").read_text("utf-8")


@pytest.mark.parametrize("name", ["Recall@5/x", "a//b", "/a", "a/", "a b", "", "recall@5/é"])
def test_a_figure_with_an_odd_name_is_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(ValueError, match="no figure's name"):
        write(tmp_path, figures={name: 1.0})


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf, True])
def test_a_figure_that_is_no_finite_number_is_refused(tmp_path: Path, value: float) -> None:
    with pytest.raises(ValueError, match="finite number"):
        write(tmp_path, figures={"a": value})


def test_what_cannot_be_written_leaves_the_old_result_in_place(tmp_path: Path) -> None:
    write(tmp_path)
    before = (tmp_path / "x.json").read_bytes()
    with pytest.raises(ValueError, match="JSON"):
        write(tmp_path, tables={"t": math.nan})

    assert (tmp_path / "x.json").read_bytes() == before
    assert [path.name for path in tmp_path.iterdir()] == ["x.json"]


def test_a_part_measured_by_itself_stays_when_the_rest_is_written_again(tmp_path: Path) -> None:
    write(tmp_path)
    results.extend(tmp_path / "x.json", "kept", figures={"c": 2}, table={"rounds": 3})
    results.extend(tmp_path / "x.json", "again", figures={"d": 2}, table={})

    found = write(tmp_path, figures={"a@5/y": 4, "d": 5})

    assert found["figures"] == {"a@5/y": 4, "c": 2, "d": 5}
    assert found["tables"].keys() == {"t", "kept"}
    assert found["tables"]["kept"]["figures"] == ["c"]


def test_outside_a_checkout_the_version_says_what_was_measured(tmp_path: Path) -> None:
    found = write(tmp_path) | {"commit": results.UNKNOWN}

    assert f"with pegboard {found['versions']['pegboard']} on" in results.measured(found)
