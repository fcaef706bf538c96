from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from pegboard_bench.tax.jobs import done


def square(number: int, log: Path) -> dict[str, Any]:
    if number < 0:
        raise ValueError(number)
    with log.open("a") as lines:
        lines.write(f"{number}\n")
    return {"square": number * number, "process": os.getpid()}


def test_jobs_run_in_processes_of_their_own_and_come_back_in_their_order(tmp_path: Path) -> None:
    log = tmp_path / "log"
    found = done({f"job{n}": (square, (n, log)) for n in range(4)}, label="squares", kept=None)

    assert {name: of["square"] for name, of in found.items()} == {"job0": 0, "job1": 1, "job2": 4, "job3": 9}
    assert os.getpid() not in {of["process"] for of in found.values()}


def test_an_interrupted_run_goes_on_where_it_was(tmp_path: Path) -> None:
    log = tmp_path / "log"
    done({"two": (square, (2, log))}, label="squares", kept=tmp_path)
    with pytest.raises(ValueError, match="-1"):
        done({"two": (square, (2, log)), "bad": (square, (-1, log))}, label="squares", kept=tmp_path)
    found = done({"two": (square, (2, log)), "three": (square, (3, log))}, label="squares", kept=tmp_path)

    assert [of["square"] for of in found.values()] == [4, 9]
    assert log.read_text().split() == ["2", "3"]


def test_without_resuming_everything_is_done_anew(tmp_path: Path) -> None:
    log = tmp_path / "log"
    for _ in range(2):
        done({"two": (square, (2, log))}, label="squares", kept=tmp_path, resume=False)

    assert log.read_text().split() == ["2", "2"]
