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
    change(repository, "beside/code.py", "ONE = 1\n")
    found = age(path, repository, ["measured"])
    assert (found.changed, found.dirty, found.current) == ((), False, True)


def test_every_file_whose_code_has_changed_is_named(repository: Path) -> None:
    path = result(repository, git(repository, "rev-parse", "HEAD"))
    change(repository, "measured/code.py", "ONE = 1\n")
    change(repository, "measured/code.py", "ONE = 2\n")
    change(repository, "measured/table.toml", "one = 1\n")
    change(repository, "measured/other.py", "OTHER = 1\n")
    found = age(path, repository, ["measured"])
    assert found.changed == ("measured/code.py", "measured/other.py", "measured/table.toml")
    assert not found.current


def test_a_file_that_is_gone_has_changed(repository: Path) -> None:
    change(repository, "measured/other.py", "OTHER = 1\n")
    path = result(repository, git(repository, "rev-parse", "HEAD"))
    git(repository, "rm", "--quiet", "measured/other.py")
    commit(repository, "Remove it")
    assert age(path, repository, ["measured"]).changed == ("measured/other.py",)


def test_what_python_does_not_run_and_what_was_taken_back_changes_nothing(repository: Path) -> None:
    change(repository, "measured/code.py", "def one() -> int:\n    return 1\n")
    path = result(repository, git(repository, "rev-parse", "HEAD"))
    change(repository, "measured/code.py", "def one() -> int:\n    return 2\n")
    change(repository, "measured/code.py", '"""Says so."""\n\ndef one() -> int:  # so\n    """One."""\n    return 1\n')
    change(repository, "measured/scan_page.py", "TEXT = 1\n")
    assert age(path, repository, ["measured"]).current


def test_a_result_of_changed_sources_or_of_an_unknown_commit_is_never_current(repository: Path) -> None:
    dirty = age(result(repository, git(repository, "rev-parse", "HEAD") + "-dirty"), repository, ["measured"])
    unknown = age(result(repository, "0" * 40), repository, ["measured"])
    assert (dirty.changed, dirty.current) == ((), False)
    assert (unknown.changed, unknown.current) == (None, False)


def test_each_section_says_what_it_measures_and_those_paths_exist() -> None:
    results = {path.stem for path in (ROOT / "bench" / "results").glob("*.json")}
    assert {*SECTIONS, *results} == MEASURED.keys()
    assert [path for paths in MEASURED.values() for path in paths if not (ROOT / path).exists()] == []


def result(root: Path, commit: str) -> Path:
    path = root / "some.json"
    path.write_text(json.dumps({"commit": commit, "date": "2026-11-24T10:00:00+00:00"}), "utf-8")
    return path


def change(root: Path, path: str, text: str = "") -> None:
    (root / path).write_text(text, "utf-8")
    git(root, "add", path)
    commit(root, f"Change {path}")


def commit(root: Path, message: str) -> None:
    git(root, "-c", "user.name=a", "-c", "user.email=a@b.example", "commit", "--quiet", "--message", message)


def git(root: Path, *words: str) -> str:
    done = subprocess.run(["git", *words], cwd=root, capture_output=True, text=True, check=True)
    return done.stdout.strip()
