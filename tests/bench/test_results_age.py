"""How old results are, by the repository's history."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from pegboard_bench.page import SECTIONS
from pegboard_bench.results_age import MEASURED, ROOT, age


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    git(tmp_path, "init", "--quiet")
    for folder in ("measured", "beside"):
        (tmp_path / folder).mkdir()
        change(tmp_path, f"{folder}/code.py")
    return tmp_path


def test_a_change_beside_what_was_measured_makes_no_result_older(repository: Path) -> None:
    path = result(repository, git(repository, "rev-parse", "HEAD"))
    change(repository, "beside/code.py")
    found = age(path, repository, ["measured"])
    assert (found.later, found.dirty, found.current) == (0, False, True)


def test_every_change_of_what_was_measured_counts(repository: Path) -> None:
    path = result(repository, git(repository, "rev-parse", "HEAD"))
    change(repository, "measured/code.py")
    change(repository, "measured/other.py")
    found = age(path, repository, ["measured"])
    assert (found.later, found.current) == (2, False)


def test_a_result_of_changed_sources_or_of_an_unknown_commit_is_never_current(repository: Path) -> None:
    dirty = age(result(repository, git(repository, "rev-parse", "HEAD") + "-dirty"), repository, ["measured"])
    unknown = age(result(repository, "0" * 40), repository, ["measured"])
    assert (dirty.later, dirty.current) == (0, False)
    assert (unknown.later, unknown.current) == (None, False)


def test_each_section_says_what_it_measures_and_those_paths_exist() -> None:
    results = {path.stem for path in (ROOT / "bench" / "results").glob("*.json")}
    assert {*SECTIONS, *results} == MEASURED.keys()
    assert [path for paths in MEASURED.values() for path in paths if not (ROOT / path).exists()] == []


def result(root: Path, commit: str) -> Path:
    path = root / "some.json"
    path.write_text(json.dumps({"commit": commit, "date": "2026-11-24T10:00:00+00:00"}), "utf-8")
    return path


def change(root: Path, path: str) -> None:
    (root / path).write_text((root / path).read_text() + "\n" if (root / path).exists() else "", "utf-8")
    git(root, "add", path)
    git(root, "-c", "user.name=a", "-c", "user.email=a@b.example", "commit", "--quiet", "--message", f"Change {path}")


def git(root: Path, *words: str) -> str:
    done = subprocess.run(["git", *words], cwd=root, capture_output=True, text=True, check=True)
    return done.stdout.strip()
